//! System calls that are refused, as the filters of containers refuse them.

use rustix::io::Errno;
use seccompiler::{SeccompAction, SeccompFilter, TargetArch};
use std::{collections::BTreeMap, env::consts::ARCH};

/// Makes system call `number` (`libc::SYS_…`) fail with `errno` in this thread, and in those that it starts,
/// from now on.
///
/// # Panics
/// If the system refuses the filter.
pub fn refuse_call(number: i64, errno: Errno) {
    let refuse = SeccompAction::Errno(errno.raw_os_error().cast_unsigned());
    let arch = TargetArch::try_from(ARCH).expect("an architecture that seccompiler knows");
    let filter = SeccompFilter::new(BTreeMap::from([(number, vec![])]), SeccompAction::Allow, refuse, arch);
    let program = filter.and_then(seccompiler::BpfProgram::try_from).expect("a filter");
    seccompiler::apply_filter(&program).expect("the system takes the filter");
}
