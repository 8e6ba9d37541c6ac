//! Files of a lock that were removed while processes have them open: `/proc` still links to them.

use crate::{
    Error, Result, descriptor,
    file::{self, Identified},
};
use rustix::{
    fs::{Dir, Mode, OFlags, fstat, readlinkat},
    io::Errno,
    process::geteuid,
};
use std::{fs, os::fd::OwnedFd, path::Path};

/// Opens the files that were at `path` and no longer have a name, in the order of their inode
/// numbers, which is the order in which processes lock them. Processes of other users cannot have
/// them open; processes of this user that cannot be examined are skipped.
///
/// # Errors
/// [`Error::System`] if a probe fails for another reason, such as a lack of descriptors: it is then
/// unknown whether such a file exists.
pub(crate) fn removed(path: &Path) -> Result<Vec<OwnedFd>> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(Vec::new()) };
    let folder =
        fs::canonicalize(folder).map_err(|cause| Error::System { call: "realpath", path: folder.to_owned(), cause })?;
    let mut link = folder.join(name).into_os_string().into_encoded_bytes();
    link.extend_from_slice(b" (deleted)");
    let mut found = Vec::new();
    let proc = Path::new("/proc");
    let processes = names(proc).map_err(Error::refused("open", proc))?;
    for process in processes.into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
        let descriptors = proc.join(process).join("fd");
        seen(of_process(&descriptors, &link, &mut found)).map_err(Error::refused("open", &descriptors))?;
    }
    found.sort_unstable_by_key(|(is, _)| *is);
    Ok(found.into_iter().map(|(_, file)| file).collect())
}

/// Adds the files that a process has open through `link`, unless they were already found.
fn of_process(descriptors: &Path, link: &[u8], found: &mut Vec<Identified>) -> Result<(), Errno> {
    let opened = descriptor::open(descriptors, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
    if fstat(&opened)?.st_uid != geteuid().as_raw() {
        return Ok(());
    }
    for number in names(descriptors)? {
        let target = seen(readlinkat(&opened, &number, Vec::new()))?;
        if target.is_none_or(|target| target.as_bytes() != link) {
            continue;
        }
        if let Some((is, file)) = seen(file::nameless_at(&descriptors.join(number)))?.flatten()
            && !found.iter().any(|(known, _)| *known == is)
        {
            found.push((is, file));
        }
    }
    Ok(())
}

/// Returns `None` for a process or file that has ended or was closed in the meantime, or cannot be
/// examined.
fn seen<T>(probe: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match probe {
        Ok(there) => Ok(Some(there)),
        Err(Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM | Errno::NXIO) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Returns the names in a directory.
fn names(folder: &Path) -> Result<Vec<String>, Errno> {
    let entries = Dir::new(descriptor::open(folder, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?)?;
    let mut names = Vec::new();
    for entry in entries {
        if let Ok(name) = entry?.file_name().to_str()
            && !name.starts_with('.')
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}
