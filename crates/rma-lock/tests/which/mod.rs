//! Which lock a test is about.

/// A lock of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    ReaderPreference,
    Packed,
    WritersFirst,
    Fair,
    BackOff,
    TwoLevels,
    /// The first of these, shared by the ranks of a node.
    Nodes,
    /// The second.
    NodesBackOff,
    /// Gates at nodes, over the first.
    Indicator,
    Recoverable,
}

pub(crate) const ALL: [Which; 10] = [
    Which::ReaderPreference,
    Which::Packed,
    Which::WritersFirst,
    Which::Fair,
    Which::BackOff,
    Which::TwoLevels,
    Which::Nodes,
    Which::NodesBackOff,
    Which::Indicator,
    Which::Recoverable,
];

/// Call `function::<lock>` with that lock.
#[allow(unused_macros)]
macro_rules! with_lock {
    ($which:expr, $function:ident($($argument:expr),*)) => {
        match $which {
            crate::which::Which::ReaderPreference => $function::<rma_lock::locks::RpLock>($($argument),*).await,
            crate::which::Which::Packed => $function::<rma_lock::locks::PackedLock>($($argument),*).await,
            crate::which::Which::WritersFirst => $function::<rma_lock::locks::WritersFirstLock>($($argument),*).await,
            crate::which::Which::Fair => $function::<rma_lock::locks::FairLock>($($argument),*).await,
            crate::which::Which::BackOff => $function::<rma_lock::locks::BackOffLock>($($argument),*).await,
            crate::which::Which::Nodes => {
                $function::<rma_lock::locks::Aggregated<rma_lock::locks::RpLock>>($($argument),*).await
            }
            crate::which::Which::Indicator => {
                $function::<rma_lock::locks::IndicatorLock<rma_lock::locks::RpLock>>($($argument),*).await
            }
            crate::which::Which::NodesBackOff => {
                $function::<rma_lock::locks::Aggregated<rma_lock::locks::BackOffLock>>($($argument),*).await
            }
            crate::which::Which::TwoLevels => $function::<rma_lock::locks::WindowLock>($($argument),*).await,
            crate::which::Which::Recoverable => $function::<rma_lock::locks::RecoverableLock>($($argument),*).await,
        }
    };
}
#[allow(unused_imports)]
pub(crate) use with_lock;

/// Call `function::<lock>` with the lock of a window that this one is, or makes.
#[allow(unused_macros)]
macro_rules! with_access_lock {
    ($which:expr, $function:ident($($argument:expr),*)) => {
        match $which {
            crate::which::Which::ReaderPreference => {
                $function::<rma_lock::locks::OneLock<rma_lock::locks::RpLock>>($($argument),*).await
            }
            crate::which::Which::Packed => {
                $function::<rma_lock::locks::OneLock<rma_lock::locks::PackedLock>>($($argument),*).await
            }
            crate::which::Which::WritersFirst => {
                $function::<rma_lock::locks::OneLock<rma_lock::locks::WritersFirstLock>>($($argument),*).await
            }
            crate::which::Which::Fair => {
                $function::<rma_lock::locks::OneLock<rma_lock::locks::FairLock>>($($argument),*).await
            }
            crate::which::Which::Nodes => {
                $function::<rma_lock::locks::OneLock<rma_lock::locks::Aggregated<rma_lock::locks::RpLock>>>($($argument),*).await
            }
            crate::which::Which::NodesBackOff => {
                $function::<rma_lock::locks::OneLock<rma_lock::locks::Aggregated<rma_lock::locks::BackOffLock>>>($($argument),*).await
            }
            crate::which::Which::Indicator => {
                $function::<rma_lock::locks::OneLock<rma_lock::locks::IndicatorLock<rma_lock::locks::RpLock>>>($($argument),*).await
            }
            crate::which::Which::Recoverable => {
                $function::<rma_lock::locks::OneLock<rma_lock::locks::RecoverableLock>>($($argument),*).await
            }
            crate::which::Which::BackOff => {
                $function::<rma_lock::locks::OneLock<rma_lock::locks::BackOffLock>>($($argument),*).await
            }
            crate::which::Which::TwoLevels => $function::<rma_lock::locks::WindowLock>($($argument),*).await,
        }
    };
}
#[allow(unused_imports)]
pub(crate) use with_access_lock;
