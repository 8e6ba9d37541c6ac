//! The command that starts this program again.

use std::{
    env,
    ffi::OsString,
    fs, io,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    process::Command,
};

/// The command that starts this program again, without the program's arguments: its file; or, if it
/// was started through a loader (`ld.so --library-path DIR PROGRAM`), the loader, the loader's
/// arguments and the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThisProgram {
    file: PathBuf,
    loading: Vec<OsString>,
}

impl ThisProgram {
    /// Finds the command that started this process.
    ///
    /// # Errors
    /// If `/proc/self/exe` or `/proc/self/cmdline` can't be read.
    pub fn find() -> io::Result<ThisProgram> {
        let arguments: Vec<_> = env::args_os().collect();
        Ok(ThisProgram { file: env::current_exe()?, loading: loading(&fs::read("/proc/self/cmdline")?, &arguments) })
    }

    /// Returns the command that starts it, without the program's arguments.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.file);
        command.args(&self.loading);
        command
    }

    /// Returns the file to execute.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the arguments of the file that come before the program's: none, or a loader's, of which
    /// the last is the program.
    #[must_use]
    pub fn loading(&self) -> &[OsString] {
        &self.loading
    }
}

/// Returns the part of a command line between its first word and the program's arguments.
///
/// A loader removes its own arguments from those that the program receives. The kernel's command
/// line contains all of them. If a program has overwritten it, to show another title, it no longer
/// ends with the program's arguments, and the result is empty.
fn loading(line: &[u8], arguments: &[OsString]) -> Vec<OsString> {
    let words: Vec<_> = line.strip_suffix(b"\0").unwrap_or(line).split(|byte| *byte == 0).collect();
    let own = words.len().saturating_sub(arguments.len());
    let ends_so = arguments.iter().map(|word| word.as_bytes()).eq(words[own..].iter().copied());
    if own == 0 || arguments.is_empty() || !ends_so {
        return Vec::new();
    }
    words[1..=own].iter().map(|word| OsString::from_vec(word.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_the_program_was_not_given_are_its_loaders() {
        let of = |line: &str, arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
            loading(line.as_bytes(), &arguments)
        };
        assert_eq!(of("ld.so\0prog\0--ranks\x002\0", &["prog", "--ranks", "2"]), ["prog"]);
        assert_eq!(of("ld.so\0--library-path\0/a b\0prog\0", &["prog"]), ["--library-path", "/a b", "prog"]);
        assert_eq!(of("ld.so\0prog\0\0", &["prog", ""]), ["prog"]);
        for (line, arguments) in [
            ("prog\0--ranks\x002\0", &["prog", "--ranks", "2"][..]),
            ("a title\0", &["prog", "--ranks", "2"]),
            ("a title with words\0\0\0\0", &["prog"]),
            ("", &["prog"]),
            ("prog\0", &[]),
        ] {
            assert_eq!(of(line, arguments), [""; 0], "{line:?}");
        }
    }

    #[test]
    fn a_test_is_its_own_file() {
        let this = ThisProgram::find().expect("found");
        assert_eq!((this.file(), this.loading()), (&*env::current_exe().expect("own path"), &[][..]));
    }
}
