//! Which lock a check is about.

use std::{fmt, str::FromStr};

/// A lock of `rma-lock`, with default options unless a check says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestedLock {
    /// [`rma_lock::locks::RpLock`].
    ReaderPreference,
    /// [`rma_lock::locks::PackedLock`].
    Packed,
    /// [`rma_lock::locks::WritersFirstLock`].
    WritersFirst,
    /// [`rma_lock::locks::FairLock`].
    Fair,
    /// [`rma_lock::locks::BackOffLock`].
    BackOff,
    /// [`rma_lock::locks::WindowLock`].
    TwoLevels,
    /// [`rma_lock::locks::Aggregated`] over [`rma_lock::locks::RpLock`].
    Nodes,
    /// [`rma_lock::locks::Aggregated`] over [`rma_lock::locks::BackOffLock`].
    NodesBackOff,
    /// [`rma_lock::locks::IndicatorLock`] over [`rma_lock::locks::RpLock`].
    Indicator,
    /// [`rma_lock::locks::RecoverableLock`].
    Recoverable,
}

impl TestedLock {
    /// Every lock.
    pub const ALL: [TestedLock; 10] = [
        TestedLock::ReaderPreference,
        TestedLock::Packed,
        TestedLock::WritersFirst,
        TestedLock::Fair,
        TestedLock::BackOff,
        TestedLock::TwoLevels,
        TestedLock::Nodes,
        TestedLock::NodesBackOff,
        TestedLock::Indicator,
        TestedLock::Recoverable,
    ];
}

/// The lock's type.
impl fmt::Display for TestedLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TestedLock::ReaderPreference => "RpLock",
            TestedLock::Packed => "PackedLock",
            TestedLock::WritersFirst => "WritersFirstLock",
            TestedLock::Fair => "FairLock",
            TestedLock::BackOff => "BackOffLock",
            TestedLock::TwoLevels => "WindowLock",
            TestedLock::Nodes => "Aggregated<RpLock>",
            TestedLock::NodesBackOff => "Aggregated<BackOffLock>",
            TestedLock::Indicator => "IndicatorLock<RpLock>",
            TestedLock::Recoverable => "RecoverableLock",
        })
    }
}

impl FromStr for TestedLock {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let named = TestedLock::ALL.into_iter().find(|lock| lock.to_string() == name);
        named.ok_or_else(|| format!("{name:?} is no lock"))
    }
}

/// Awaits `function::<L>(arguments)` with the type `L` of a [`TestedLock`].
#[macro_export]
macro_rules! with_lock {
    (@ $lock:expr, $function:ident $arguments:tt, $wrapper:tt) => {{
        use $crate::lock::TestedLock;
        use $crate::rma_lock::locks::*;
        match $lock {
            TestedLock::ReaderPreference => $crate::with_lock!(# RpLock, $function $arguments, $wrapper),
            TestedLock::Packed => $crate::with_lock!(# PackedLock, $function $arguments, $wrapper),
            TestedLock::WritersFirst => $crate::with_lock!(# WritersFirstLock, $function $arguments, $wrapper),
            TestedLock::Fair => $crate::with_lock!(# FairLock, $function $arguments, $wrapper),
            TestedLock::BackOff => $crate::with_lock!(# BackOffLock, $function $arguments, $wrapper),
            TestedLock::Nodes => $crate::with_lock!(# Aggregated<RpLock>, $function $arguments, $wrapper),
            TestedLock::NodesBackOff => $crate::with_lock!(# Aggregated<BackOffLock>, $function $arguments, $wrapper),
            TestedLock::Indicator => $crate::with_lock!(# IndicatorLock<RpLock>, $function $arguments, $wrapper),
            TestedLock::Recoverable => $crate::with_lock!(# RecoverableLock, $function $arguments, $wrapper),
            // A window's lock as it is.
            TestedLock::TwoLevels => $crate::with_lock!(# WindowLock, $function $arguments, []),
        }
    }};
    (# $type:ty, $function:ident($($argument:expr),*), []) => { $function::<$type>($($argument),*).await };
    (# $type:ty, $function:ident($($argument:expr),*), [access]) => {
        $function::<OneLock<$type>>($($argument),*).await
    };
    ($lock:expr, $function:ident($($argument:expr),*)) => {
        $crate::with_lock!(@ $lock, $function($($argument),*), [])
    };
}

/// Awaits `function::<L>(arguments)` with the window's lock `L` that a [`TestedLock`] is, or makes.
#[macro_export]
macro_rules! with_access_lock {
    ($lock:expr, $function:ident($($argument:expr),*)) => {
        $crate::with_lock!(@ $lock, $function($($argument),*), [access])
    };
}
