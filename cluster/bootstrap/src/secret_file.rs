//! A secret in a file that the user names.

use crate::{BadSecret, Secret};
use rustix::{
    fs::{FileType, Mode, OFlags, fstat, open},
    process::geteuid,
};
use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The environment variable that holds the path of the secret file.
pub const SECRET_FILE: &str = "ONESIDED_SECRET_FILE";

/// A file can't be used for a secret, or does not contain one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretFileError {
    /// The variable is not set.
    #[error("{SECRET_FILE} does not name a file with the secret of the job, which this launcher needs")]
    Unnamed,
    /// It is not a regular file.
    #[error("{} is not a regular file", path.display())]
    NotRegular {
        /// The file.
        path: PathBuf,
    },
    /// It belongs to another user.
    #[error("{} belongs to user {owner}, not to user {user}", path.display())]
    Owner {
        /// The file.
        path: PathBuf,
        /// The owner of the file.
        owner: u32,
        /// The user of this process.
        user: u32,
    },
    /// Other users may read or write it.
    #[error("{} has mode {mode:03o}: only its owner may have rights", path.display())]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It does not contain a secret.
    #[error("{}: {cause}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: BadSecret,
    },
    /// The system refused to open or read it.
    #[error("{}: {cause}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: io::Error,
    },
}

impl Secret {
    /// Reads the text form from a file, which has to be a regular file that belongs to this
    /// process's user and gives no rights to other users.
    pub fn from_file(path: &Path) -> Result<Self, SecretFileError> {
        let system = |cause: io::Error| SecretFileError::System { path: path.into(), cause };
        // The checks use the open descriptor, so the file can't be replaced between check and use.
        // Opening a pipe must not wait for its other end.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = open(path, flags, Mode::empty()).map_err(|cause| system(cause.into()))?;
        let stat = fstat(&file).map_err(|cause| system(cause.into()))?;
        let (path, user) = (path.to_path_buf(), geteuid().as_raw());
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(SecretFileError::NotRegular { path });
        }
        if stat.st_uid != user {
            return Err(SecretFileError::Owner { path, owner: stat.st_uid, user });
        }
        if stat.st_mode & 0o077 != 0 {
            return Err(SecretFileError::Mode { path, mode: stat.st_mode & 0o777 });
        }
        let mut text = String::new();
        let read = File::from(file).take(256).read_to_string(&mut text);
        read.map_err(|cause| SecretFileError::System { path: path.clone(), cause })?;
        Self::from_hex(&text).map_err(|cause| SecretFileError::Bad { path, cause })
    }
}
