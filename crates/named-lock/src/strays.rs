//! Files of a lock that were removed while processes have them open: `/proc` still leads to them.

use crate::{Error, Result, descriptor, file};
use rustix::{
    fs::{Dir, Mode, OFlags, fstat, readlinkat},
    process::geteuid,
};
use std::{fs, os::fd::OwnedFd, path::Path};

/// Opens the files that were at `path` and have no name any more. Other users' processes can't have
/// them open; those of this user that can't be looked into are left out.
pub(crate) fn removed(path: &Path) -> Result<Vec<OwnedFd>> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(Vec::new()) };
    let folder =
        fs::canonicalize(folder).map_err(|cause| Error::System { call: "realpath", path: folder.to_owned(), cause })?;
    let mut link = folder.join(name).into_os_string().into_encoded_bytes();
    link.extend_from_slice(b" (deleted)");
    let mut found: Vec<(u64, u64)> = Vec::new();
    let mut files = Vec::new();
    let own = geteuid().as_raw();
    for process in names(Path::new("/proc")).into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
        let descriptors = Path::new("/proc").join(process).join("fd");
        let Ok(opened) = descriptor::open(&descriptors, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) else {
            continue;
        };
        if fstat(&opened).map_or(true, |stat| stat.st_uid != own) {
            continue;
        }
        for number in names(&descriptors) {
            if !readlinkat(&opened, &number, Vec::new()).is_ok_and(|target| target.as_bytes() == link) {
                continue;
            }
            if let Some((file, is)) = file::nameless_at(&descriptors.join(number))
                && !found.contains(&is)
            {
                found.push(is);
                files.push(file);
            }
        }
    }
    Ok(files)
}

/// Returns the names in a directory that can be read.
fn names(folder: &Path) -> Vec<String> {
    let opened = descriptor::open(folder, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
    let Ok(entries) = opened.and_then(Dir::new) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str().ok().map(str::to_owned));
    names.filter(|name| !name.starts_with('.')).collect()
}
