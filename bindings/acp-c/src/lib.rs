//! ACP for C programs: `libacp.so` and `libacp.a`, to be linked in place of the libraries of ACP.
//!
//! The library has no interface for Rust: that is the crate `acp` (`onesided-acp`), of which this one
//! is a thin wrapper. `include/acp.h` declares its functions, and the book's page "ACP for C programs"
//! explains their use.
//!
//! # Execution of a call
//! `names` exports the functions of the basic layer, `middle` those of the middle layer. A function
//! enters at `boundary`, which finds the `library`, the process-wide state, and turns errors into
//! the function's failure value. A future runs on the calling thread (`block_on_short`). The library has
//! no lock of its own around calls: the crate `acp` locks what threads share, so a thread that waits
//! does not hold up others.
//!
//! | module | responsibility |
//! |---|---|
//! | `boundary` | entry of calls from C, failure values, the end of the process after a loss |
//! | `library` | the state of the process between `acp_init` and `acp_finalize` |
//! | `start` | `acp_init`, `acp_reset`, `acp_finalize`, `acp_abort` |
//! | `machine` | what a rank runs on: `tofu2-shm`, or a simulator in virtual time (`tofu2-stepped`) |
//! | `options` | the `--acp-*` words of the command line |
//! | `memory` | registered memory of the program |
//! | `hooks` | the middle layer that `acp_init` starts: this library's, or another one's |

#![cfg(target_os = "linux")]

mod acprun;
mod arguments;
mod boundary;
mod error;
mod hooks;
mod library;
mod machine;
mod memory;
mod middle;
mod names;
mod options;
mod start;
