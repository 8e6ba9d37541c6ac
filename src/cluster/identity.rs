//! The identities of a rank's program and of its node, which ranks compare.
//!
//! An identity that can't be read is an error: otherwise, two machines of unknown identity would be
//! mistaken for one.

use super::{NODE_VARIABLE, failed};
use crate::{Launch, OnNode, report::LaunchError};
use std::{
    env, fs,
    fs::File,
    hash::{DefaultHasher, Hasher},
    io::{self, Read},
};

/// Returns this host's name, for messages.
pub(super) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the identity that processes share if they can share memory: that of a machine, its boot
/// and its network namespace, or the name that the user has set.
pub(super) fn node(launch: &Launch, rank: u32) -> Result<String, LaunchError> {
    if launch.on_node == OnNode::Ofi {
        return Ok(format!("rank {rank}"));
    }
    if let Ok(named) = env::var(NODE_VARIABLE) {
        return Ok(format!("named {named}"));
    }
    machine("/proc/sys/kernel/random/boot_id", "/proc/self/ns/net")
}

/// Reads the machine's identity from these files.
fn machine(boot: &str, namespace: &str) -> Result<String, LaunchError> {
    let unknown = |path: &str, cause: &io::Error| {
        failed(&format_args!(
            "{path}, which tells machines apart, can't be read ({cause}); {NODE_VARIABLE} can name the node"
        ))
    };
    let id = fs::read_to_string(boot).map_err(|cause| unknown(boot, &cause))?;
    if id.trim().is_empty() {
        return Err(unknown(boot, &io::ErrorKind::UnexpectedEof.into()));
    }
    let space = fs::read_link(namespace).map_err(|cause| unknown(namespace, &cause))?;
    Ok(format!("{} {}", id.trim(), space.display()))
}

/// Returns the identity that processes share if they run the same program: its version, and the
/// length and a hash of its file.
pub(super) fn build() -> Result<String, LaunchError> {
    let program = "/proc/self/exe";
    let read = File::open(program).and_then(hash);
    let (bytes, hash) = read.map_err(|cause| {
        failed(&format_args!("{program} can't be read, by which ranks see that they run the same program: {cause}"))
    })?;
    Ok(format!("onesided {} ({bytes} bytes, {hash:016x})", env!("CARGO_PKG_VERSION")))
}

/// Returns the number of bytes, and a hash of them.
fn hash(mut from: impl Read) -> io::Result<(u64, u64)> {
    let (mut hasher, mut piece, mut bytes) = (DefaultHasher::new(), vec![0; 64 << 10], 0);
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok((bytes, hasher.finish())),
            Ok(count) => {
                hasher.write(&piece[..count]);
                bytes += count as u64;
            }
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_that_is_unknown_is_an_error() {
        let (boot, space) = ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/net");
        assert!(machine(boot, space).is_ok_and(|text| text.len() > 36 && text.ends_with(']')));
        for (boot, space, named) in
            [("/nowhere", space, "/nowhere"), (boot, "/none", "/none"), ("/dev/null", space, "/dev/null")]
        {
            let error = machine(boot, space).unwrap_err().to_string();
            assert!(error.starts_with(named) && error.ends_with("ONESIDED_NODE can name the node"), "{error}");
        }
    }

    #[test]
    fn builds_are_distinguished_by_all_bytes() {
        let bytes = vec![7; 200_000];
        let (length, same) = hash(&bytes[..]).unwrap();
        assert_eq!((length, hash(&bytes[..]).unwrap()), (200_000, (length, same)));
        assert_ne!(hash(&[&bytes[1..], &[8]].concat()[..]).unwrap().1, same);
        assert_eq!(build().unwrap(), build().unwrap());
    }
}
