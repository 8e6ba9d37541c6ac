//! Which lock a test is about.

/// A lock of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    ReaderPreference,
    BackOff,
    TwoLevels,
}

pub(crate) const ALL: [Which; 3] = [Which::ReaderPreference, Which::BackOff, Which::TwoLevels];

/// Call `function::<F, lock>` with that lock.
#[allow(unused_macros)]
macro_rules! with_lock {
    ($which:expr, $function:ident::<$fabric:ty>($($argument:expr),*)) => {
        match $which {
            crate::which::Which::ReaderPreference => $function::<$fabric, rma_lock::RpLock<$fabric>>($($argument),*).await,
            crate::which::Which::BackOff => $function::<$fabric, rma_lock::BackOffLock<$fabric>>($($argument),*).await,
            crate::which::Which::TwoLevels => $function::<$fabric, rma_lock::WindowLock<$fabric>>($($argument),*).await,
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
            crate::which::Which::BackOff => {
                $function::<$fabric, rma_lock::OneLock<rma_lock::BackOffLock<$fabric>>>($($argument),*).await
            }
            crate::which::Which::TwoLevels => $function::<$fabric, rma_lock::WindowLock<$fabric>>($($argument),*).await,
        }
    };
}
#[allow(unused_imports)]
pub(crate) use with_access_lock;
