//! Whether programs are installed on this machine.

use std::process::Command;

/// Returns whether a shell finds a program, also among those of the system's administrator.
pub(crate) fn is_installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", "PATH=$PATH:/usr/sbin:/sbin; command -v \"$0\"", program]).output();
    found.is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_there_and_nonsense_is_not() {
        assert!(is_installed("sh") && !is_installed("no-such-program-anywhere"));
    }
}
