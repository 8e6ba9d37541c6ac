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

/// Call `function::<F, lock>` with that lock.
#[allow(unused_macros)]
macro_rules! with_lock {
    ($which:expr, $function:ident::<$fabric:ty>($($argument:expr),*)) => {
        match $which {
            crate::which::Which::ReaderPreference => $function::<$fabric, rma_lock::RpLock<$fabric>>($($argument),*).await,
            crate::which::Which::Packed => $function::<$fabric, rma_lock::PackedLock<$fabric>>($($argument),*).await,
            crate::which::Which::WritersFirst => $function::<$fabric, rma_lock::WritersFirstLock<$fabric>>($($argument),*).await,
            crate::which::Which::Fair => $function::<$fabric, rma_lock::FairLock<$fabric>>($($argument),*).await,
            crate::which::Which::BackOff => $function::<$fabric, rma_lock::BackOffLock<$fabric>>($($argument),*).await,
            crate::which::Which::Nodes => {
                $function::<$fabric, rma_lock::Aggregated<$fabric, rma_lock::RpLock<$fabric>>>($($argument),*).await
            }
            crate::which::Which::Indicator => {
                $function::<$fabric, rma_lock::IndicatorLock<$fabric, rma_lock::RpLock<$fabric>>>($($argument),*).await
            }
            crate::which::Which::NodesBackOff => {
                $function::<$fabric, rma_lock::Aggregated<$fabric, rma_lock::BackOffLock<$fabric>>>($($argument),*).await
            }
            crate::which::Which::TwoLevels => $function::<$fabric, rma_lock::WindowLock<$fabric>>($($argument),*).await,
            crate::which::Which::Recoverable => $function::<$fabric, rma_lock::RecoverableLock<$fabric>>($($argument),*).await,
        }
    };
}
#[allow(unused_imports)]
pub(crate) use with_lock;

/// Call `function::<F, lock>` with the lock of a window that this one is, or makes.
#[allow(unused_macros)]
macro_rules! with_access_lock {
    ($which:expr, $function:ident::<$fabric:ty>($($argument:expr),*)) => {
        match $which {
            crate::which::Which::ReaderPreference => {
                $function::<$fabric, rma_lock::OneLock<rma_lock::RpLock<$fabric>>>($($argument),*).await
            }
            crate::which::Which::Packed => {
                $function::<$fabric, rma_lock::OneLock<rma_lock::PackedLock<$fabric>>>($($argument),*).await
            }
            crate::which::Which::WritersFirst => {
                $function::<$fabric, rma_lock::OneLock<rma_lock::WritersFirstLock<$fabric>>>($($argument),*).await
            }
            crate::which::Which::Fair => {
                $function::<$fabric, rma_lock::OneLock<rma_lock::FairLock<$fabric>>>($($argument),*).await
            }
            crate::which::Which::Nodes => {
                $function::<$fabric, rma_lock::OneLock<rma_lock::Aggregated<$fabric, rma_lock::RpLock<$fabric>>>>($($argument),*).await
            }
            crate::which::Which::NodesBackOff => {
                $function::<$fabric, rma_lock::OneLock<rma_lock::Aggregated<$fabric, rma_lock::BackOffLock<$fabric>>>>($($argument),*).await
            }
            crate::which::Which::Indicator => {
                $function::<$fabric, rma_lock::OneLock<rma_lock::IndicatorLock<$fabric, rma_lock::RpLock<$fabric>>>>($($argument),*).await
            }
            crate::which::Which::Recoverable => {
                $function::<$fabric, rma_lock::OneLock<rma_lock::RecoverableLock<$fabric>>>($($argument),*).await
            }
            crate::which::Which::BackOff => {
                $function::<$fabric, rma_lock::OneLock<rma_lock::BackOffLock<$fabric>>>($($argument),*).await
            }
            crate::which::Which::TwoLevels => $function::<$fabric, rma_lock::WindowLock<$fabric>>($($argument),*).await,
        }
    };
}
#[allow(unused_imports)]
pub(crate) use with_access_lock;
