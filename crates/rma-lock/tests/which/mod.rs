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
            crate::which::Which::ReaderPreference => $function::<rma_lock::RpLock>($($argument),*).await,
            crate::which::Which::Packed => $function::<rma_lock::PackedLock>($($argument),*).await,
            crate::which::Which::WritersFirst => $function::<rma_lock::WritersFirstLock>($($argument),*).await,
            crate::which::Which::Fair => $function::<rma_lock::FairLock>($($argument),*).await,
            crate::which::Which::BackOff => $function::<rma_lock::BackOffLock>($($argument),*).await,
            crate::which::Which::Nodes => {
                $function::<rma_lock::Aggregated<rma_lock::RpLock>>($($argument),*).await
            }
            crate::which::Which::Indicator => {
                $function::<rma_lock::IndicatorLock<rma_lock::RpLock>>($($argument),*).await
            }
            crate::which::Which::NodesBackOff => {
                $function::<rma_lock::Aggregated<rma_lock::BackOffLock>>($($argument),*).await
            }
            crate::which::Which::TwoLevels => $function::<rma_lock::WindowLock>($($argument),*).await,
            crate::which::Which::Recoverable => $function::<rma_lock::RecoverableLock>($($argument),*).await,
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
                $function::<rma_lock::OneLock<rma_lock::RpLock>>($($argument),*).await
            }
            crate::which::Which::Packed => {
                $function::<rma_lock::OneLock<rma_lock::PackedLock>>($($argument),*).await
            }
            crate::which::Which::WritersFirst => {
                $function::<rma_lock::OneLock<rma_lock::WritersFirstLock>>($($argument),*).await
            }
            crate::which::Which::Fair => {
                $function::<rma_lock::OneLock<rma_lock::FairLock>>($($argument),*).await
            }
            crate::which::Which::Nodes => {
                $function::<rma_lock::OneLock<rma_lock::Aggregated<rma_lock::RpLock>>>($($argument),*).await
            }
            crate::which::Which::NodesBackOff => {
                $function::<rma_lock::OneLock<rma_lock::Aggregated<rma_lock::BackOffLock>>>($($argument),*).await
            }
            crate::which::Which::Indicator => {
                $function::<rma_lock::OneLock<rma_lock::IndicatorLock<rma_lock::RpLock>>>($($argument),*).await
            }
            crate::which::Which::Recoverable => {
                $function::<rma_lock::OneLock<rma_lock::RecoverableLock>>($($argument),*).await
            }
            crate::which::Which::BackOff => {
                $function::<rma_lock::OneLock<rma_lock::BackOffLock>>($($argument),*).await
            }
            crate::which::Which::TwoLevels => $function::<rma_lock::WindowLock>($($argument),*).await,
        }
    };
}
#[allow(unused_imports)]
pub(crate) use with_access_lock;
