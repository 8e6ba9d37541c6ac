//! Bindings to libpmix, which is opened on demand.
//!
//! **Invariants.**
//! * The structures and functions are as [`abi`](super::abi) declares them: [`Library::open`]
//!   refuses versions before 3 and systems other than 64-bit ones.
//! * A library is never closed: its threads and its exit handlers continue to run. So its functions
//!   live as long as the process.
//! * A [`Session`] stays on the thread that created it, and it exists between a `PMIx_Init` that
//!   succeeded and its one `PMIx_Finalize`; each other call takes a session.
//! * The arguments of a call outlive it, since all calls block, and the library copies them.
//! * A value that the library returns belongs to the caller; it was allocated by `malloc`, and so
//!   were the bytes it points to. It is copied and freed here, once.

#![allow(unsafe_code)]

use super::{
    abi::{
        BOOL, BYTE_OBJECT, ByteObject, COLLECT_DATA, Commit, Data, ErrorString, Fence, Finalize, GLOBAL, Get,
        GetVersion, INT, Info, Init, KEY_LIMIT, NOT_FOUND, Proc, Put, TIMEOUT_KEY, UINT32, Value,
    },
    error::PmixError,
};
use core::{
    ffi::{CStr, c_char, c_int, c_void},
    marker::PhantomData,
    mem,
    ptr::{self, NonNull},
    slice,
};
use std::ffi::CString;

/// A failed call: its name and the returned status.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed {
    pub(super) call: &'static str,
    pub(super) status: i32,
}

/// A value that a rank put, or that the launcher provides.
#[derive(Debug)]
pub(super) enum Found {
    Bytes(Vec<u8>),
    Number(u32),
    /// Of another type, identified by PMIx's number.
    Other(u16),
}

/// The functions of an open library.
#[derive(Debug)]
pub(super) struct Library {
    init: Init,
    finalize: Finalize,
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
    error_string: ErrorString,
    version: String,
}

impl Library {
    /// Opens the library of this name or path, for the lifetime of the process.
    pub(super) fn open(name: &str) -> Result<&'static Self, PmixError> {
        let missing = |reason| PmixError::Missing { library: name.to_owned(), reason };
        let path = CString::new(name).map_err(|error| missing(error.to_string()))?;
        // SAFETY: libraries of this name have initialisers that any thread may run at any time.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        // It is never closed, see above.
        let handle = NonNull::new(handle).ok_or_else(|| missing(loaders_words()))?;
        // SAFETY: this function has this type in every version of PMIx.
        let version = unsafe { symbol::<GetVersion>(handle, name, "PMIx_Get_version") }?;
        // SAFETY: it may be called before `PMIx_Init`, and returns a constant text.
        let version = unsafe { text(version()) }.unwrap_or_default();
        if usize::BITS != 64 || major(&version).is_none_or(|major| major < 3) {
            return Err(PmixError::Version { library: name.to_owned(), version });
        }
        // SAFETY: the functions have these types in these versions.
        let library = unsafe {
            Self {
                init: symbol(handle, name, "PMIx_Init")?,
                finalize: symbol(handle, name, "PMIx_Finalize")?,
                put: symbol(handle, name, "PMIx_Put")?,
                commit: symbol(handle, name, "PMIx_Commit")?,
                fence: symbol(handle, name, "PMIx_Fence")?,
                get: symbol(handle, name, "PMIx_Get")?,
                error_string: symbol(handle, name, "PMIx_Error_string")?,
                version,
            }
        };
        Ok(Box::leak(Box::new(library)))
    }

    /// Returns the library's version string.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Returns the library's text for a status.
    pub(super) fn text_of(&self, status: i32) -> String {
        // SAFETY: any number may be asked for, at any time; the text is a constant.
        unsafe { text((self.error_string)(status)) }.unwrap_or_else(|| "unknown".to_owned())
    }
}

/// Returns the major number of a version's text, such as `OpenPMIx 4.2.2rc2 (PMIx Standard: …)`.
fn major(version: &str) -> Option<u32> {
    let number = version.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    number.split('.').next()?.parse().ok()
}

/// Returns a function of the library.
///
/// # Safety
/// The library is open, and the function has type `F`, a function pointer.
unsafe fn symbol<F: Copy>(handle: NonNull<c_void>, library: &str, name: &'static str) -> Result<F, PmixError> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let lacking = |reason| PmixError::Symbol { library: library.to_owned(), symbol: name, reason };
    let text = CString::new(name).map_err(|error| lacking(error.to_string()))?;
    // SAFETY: the library is open; the name is a text.
    let found = NonNull::new(unsafe { libc::dlsym(handle.as_ptr(), text.as_ptr()) });
    let found = found.ok_or_else(|| lacking(loaders_words()))?;
    // SAFETY: the type is right, as guaranteed by the caller, and as long as a pointer; it is not
    // null.
    Ok(unsafe { mem::transmute_copy(&found) })
}

/// Returns the loader's message for the last failed call of this thread.
fn loaders_words() -> String {
    // SAFETY: the text is this thread's until its next call of the loader.
    unsafe { text(libc::dlerror()) }.unwrap_or_else(|| "the loader does not say why".to_owned())
}

/// Copies a C string, if there is one.
///
/// # Safety
/// The address is null, or that of a zero-terminated text that does not change during the call.
unsafe fn text(address: *const c_char) -> Option<String> {
    // SAFETY: it is a text, as guaranteed by the caller.
    (!address.is_null()).then(|| unsafe { CStr::from_ptr(address) }.to_string_lossy().into_owned())
}

/// Converts the status that `call` returned to a result.
fn check(call: &'static str, status: c_int) -> Result<(), Failed> {
    if status == 0 { Ok(()) } else { Err(Failed { call, status }) }
}

/// Creates an attribute for a call.
fn info(key: &CStr, kind: u16, data: Data) -> Info {
    let mut info = Info { key: [0; KEY_LIMIT + 1], flags: 0, value: Value { kind, data } };
    info.key[..key.count_bytes()].copy_from_slice(key.to_bytes());
    info
}

/// This process as a client of its launcher.
#[derive(Debug)]
pub(super) struct Session {
    library: &'static Library,
    namespace: [u8; 256],
    rank: u32,
    /// It stays on its thread.
    _thread: PhantomData<*const ()>,
}

impl Session {
    /// Connects to the launcher's server.
    pub(super) fn init(library: &'static Library) -> Result<Self, Failed> {
        let mut me = Proc { namespace: [0; 256], rank: 0 };
        // SAFETY: the library fills `me`; there are no attributes.
        check("PMIx_Init", unsafe { (library.init)(&mut me, ptr::null_mut(), 0) })?;
        Ok(Self { library, namespace: me.namespace, rank: me.rank, _thread: PhantomData })
    }

    /// Returns this process's rank.
    pub(super) fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns the job's name.
    pub(super) fn namespace(&self) -> String {
        let end = self.namespace.iter().position(|byte| *byte == 0).unwrap_or(self.namespace.len());
        String::from_utf8_lossy(&self.namespace[..end]).into_owned()
    }

    /// Stores bytes until the next commit.
    pub(super) fn put(&self, key: &CStr, bytes: &[u8]) -> Result<(), Failed> {
        let bytes = ByteObject { bytes: bytes.as_ptr().cast_mut().cast(), size: bytes.len() };
        let mut value = Value { kind: BYTE_OBJECT, data: Data { bytes } };
        // SAFETY: the library copies the value and its bytes, and writes neither.
        check("PMIx_Put", unsafe { (self.library.put)(GLOBAL, key.as_ptr(), &mut value) })
    }

    /// Publishes all values put since the last commit.
    pub(super) fn commit(&self) -> Result<(), Failed> {
        // SAFETY: a session is there.
        check("PMIx_Commit", unsafe { (self.library.commit)() })
    }

    /// Waits for all ranks of the job, and distributes their published values.
    pub(super) fn fence(&self, seconds: c_int) -> Result<(), Failed> {
        let infos = [info(COLLECT_DATA, BOOL, Data { flag: true }), info(TIMEOUT_KEY, INT, Data { integer: seconds })];
        // SAFETY: no ranks mean all of them; the attributes outlive the call.
        check("PMIx_Fence", unsafe { (self.library.fence)(ptr::null(), 0, infos.as_ptr(), infos.len()) })
    }

    /// Returns a value of a rank, or of [`JOB`](super::abi::JOB).
    pub(super) fn get(&self, rank: u32, key: &CStr, seconds: c_int) -> Result<Found, Failed> {
        let whose = Proc { namespace: self.namespace, rank };
        let infos = [info(TIMEOUT_KEY, INT, Data { integer: seconds })];
        let mut value: *mut Value = ptr::null_mut();
        // SAFETY: rank, key and attributes outlive the call.
        check("PMIx_Get", unsafe {
            (self.library.get)(&whose, key.as_ptr(), infos.as_ptr(), infos.len(), &mut value)
        })?;
        if value.is_null() {
            return Err(Failed { call: "PMIx_Get", status: NOT_FOUND });
        }
        // SAFETY: the library hands out a value that is this caller's.
        Ok(unsafe { take(value) })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: this is the session's end. A failure means that the server is gone already.
        unsafe { (self.library.finalize)(ptr::null(), 0) };
    }
}

/// Copies a value and frees it. If its type is unknown, the data that it points to is leaked.
///
/// # Safety
/// The value was returned by the library and is not used or freed afterwards.
unsafe fn take(value: *mut Value) -> Found {
    // SAFETY: the value is valid, as guaranteed by the caller, and its type determines which member
    // of the union is set; the bytes exist if there are any. Both were allocated by `malloc`.
    unsafe {
        let found = match (*value).kind {
            BYTE_OBJECT => {
                let ByteObject { bytes, size } = (*value).data.bytes;
                let empty = bytes.is_null() || size == 0;
                let copy = if empty { Vec::new() } else { slice::from_raw_parts(bytes.cast::<u8>(), size).to_vec() };
                libc::free(bytes.cast::<c_void>());
                Found::Bytes(copy)
            }
            UINT32 => Found::Number((*value).data.uint32),
            other => Found::Other(other),
        };
        libc::free(value.cast::<c_void>());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn versions_are_read() {
        assert_eq!(major("OpenPMIx 4.2.2rc2 (PMIx Standard: 4.2, Stable ABI: 0.0)"), Some(4));
        assert_eq!(major("OpenPMIx 3.2.3, repo rev: v3.2.3"), Some(3));
        assert_eq!(major("PMIx 2.2.5"), Some(2));
        assert_eq!(major("OpenPMIx"), None);
        assert_eq!(major(""), None);
    }
}
