//! Secret files.

use bootstrap::{Secret, SecretFileError};
use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

#[test]
fn only_a_private_regular_file_with_a_secret_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    let secret = Secret::random().unwrap();
    assert!(matches!(Secret::from_file(&path), Err(SecretFileError::System { .. })));
    fs::write(&path, format!("{}\n", secret.to_hex())).unwrap();
    for (mode, good) in [(0o600, true), (0o400, true), (0o700, true), (0o640, false), (0o604, false), (0o620, false)] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        match Secret::from_file(&path) {
            Ok(read) => assert!(good && read == secret),
            Err(SecretFileError::Mode { mode: named, .. }) => assert!(!good && named == mode),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(matches!(Secret::from_file(folder.path()), Err(SecretFileError::NotRegular { .. })));
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert!(matches!(Secret::from_file(&pipe), Err(SecretFileError::NotRegular { .. })));
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    fs::write(&path, "not a secret").unwrap();
    assert!(matches!(Secret::from_file(&path), Err(SecretFileError::Bad { .. })));
}
