//! The format of control queues: commands as [`descriptor`]s, errors as [`status`] words, positions
//! in a [`ring`], the entries of tags ([`stadd`]), and the queues of a [`machine`].
//!
//! These modules do no I/O and do not depend on the location of a queue's memory. Every word is
//! checked when it is decoded: garbage is an error.

pub(crate) mod descriptor;
pub(crate) mod machine;
pub(crate) mod ring;
pub(crate) mod stadd;
pub(crate) mod status;
