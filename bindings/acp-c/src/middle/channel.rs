//! Channels.

#![allow(unsafe_code, reason = "exported names, and the buffers of the program")]

use super::{
    call::{CallError, Result, call},
    handles::{Handle, handle, number},
    state,
    types::rank,
};
use acp::{Acp, AcpError, Arrival, Receiver, Request, Sender};
use core::{ffi::c_int, ptr};

/// A request that has not been waited for.
pub(super) enum Pending {
    Send(Request<Vec<u8>>),
    Receive(Request<(Vec<u8>, Arrival)>, Buffer),
    Free(Request<()>),
}

/// The buffer of a receive.
pub(super) struct Buffer(*mut u8);

// SAFETY: only a pointer; the program lends the buffer to the library until the request has been
// waited for, by whichever thread.
unsafe impl Send for Buffer {}

const FAILED: usize = usize::MAX;

// SAFETY: the name is ACP's; a program has one ACP.
#[unsafe(no_mangle)]
extern "C" fn acp_create_ch(sender: c_int, receiver: c_int) -> Handle {
    call("acp_create_ch", ptr::null_mut(), async |acp| {
        let (sender, receiver) = (rank(sender)?, rank(receiver)?);
        let number = match acp.rank() {
            me if me == sender => acp.sender(receiver)?.into_raw(),
            me if me == receiver => acp.receiver(sender)?.into_raw(),
            _ => return Err(CallError::Argument("a channel between other ranks")),
        };
        Ok(handle(number))
    })
}

/// Queues a copy of a message.
///
/// # Safety
/// There are `size` bytes at `buf`.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn acp_nbsend_ch(ch: Handle, buf: *const u8, size: usize) -> Handle {
    call("acp_nbsend_ch", ptr::null_mut(), async |acp| {
        let end = acp.sender_from_raw(number(ch))?;
        // Dropping the end would free the channel.
        let request = room(buf, size).map(|mut message| {
            if size > 0 {
                // SAFETY: as required from the caller; the capacity is `size`.
                message.extend_from_slice(unsafe { core::slice::from_raw_parts(buf, size) });
            }
            end.post(message)
        });
        end.into_raw();
        let pending = Pending::Send(request?);
        state::add(pending, |objects| &mut objects.requests)
    })
}

/// Posts a receive, whose message is stored by [`acp_wait_ch`].
///
/// # Safety
/// There are `size` bytes at `buf`, which the program leaves alone until the request has been waited
/// for.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn acp_nbrecv_ch(ch: Handle, buf: *mut u8, size: usize) -> Handle {
    call("acp_nbrecv_ch", ptr::null_mut(), async |acp| {
        let end = acp.receiver_from_raw(number(ch))?;
        let request = room(buf, size).map(|_| end.post(vec![0; size]));
        end.into_raw();
        let pending = Pending::Receive(request?, Buffer(buf));
        state::add(pending, |objects| &mut objects.requests)
    })
}

/// Returns a vector with room for a message of the program, unless that cannot exist.
fn room(buf: *const u8, size: usize) -> Result<Vec<u8>> {
    let mut room = Vec::new();
    match room.try_reserve_exact(size) {
        Ok(()) if size == 0 || !buf.is_null() => Ok(room),
        _ => Err(CallError::Argument("a buffer without memory")),
    }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_nbfree_ch(ch: Handle) -> Handle {
    call("acp_nbfree_ch", ptr::null_mut(), async |acp| {
        let request = free(acp, number(ch))?;
        state::add(Pending::Free(request), |objects| &mut objects.requests)
    })
}

fn free(acp: &Acp, number: u64) -> Result<Request<()>> {
    match acp.sender_from_raw(number) {
        Err(AcpError::WrongEnd { .. }) => Ok(Receiver::free(acp.receiver_from_raw(number)?)),
        end => Ok(Sender::free(end?)),
    }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_free_ch(ch: Handle) -> c_int {
    code(acp_wait_ch(acp_nbfree_ch(ch)))
}

/// Waits for a request; returns the bytes received.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_wait_ch(request: Handle) -> usize {
    call("acp_wait_ch", FAILED, async |_| match state::with(|objects| objects.requests.take(request))? {
        Pending::Send(request) => Ok(request.await.map(|_| 0)?),
        Pending::Free(request) => Ok(request.await.map(|()| 0)?),
        Pending::Receive(request, buffer) => {
            let (message, Arrival { bytes, .. }) = request.await?;
            if bytes > 0 {
                // SAFETY: the caller of `acp_nbrecv_ch` lends a buffer of as many bytes as `message`
                // has, and has not waited for the request before.
                unsafe { ptr::copy_nonoverlapping(message.as_ptr(), buffer.0, bytes) };
            }
            Ok(bytes)
        }
    })
}

/// Waits for requests; stores the result of each.
///
/// # Safety
/// There are `count` requests, and as many sizes unless `sizes` is null.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn acp_waitall_ch(requests: *const Handle, count: c_int, sizes: *mut usize) -> c_int {
    let count = match usize::try_from(count) {
        Ok(0) => return 0,
        Ok(count) if !requests.is_null() => count,
        _ => return -1,
    };
    let mut all = 0;
    for at in 0..count {
        // SAFETY: the request exists.
        let size = acp_wait_ch(unsafe { requests.add(at).read() });
        if !sizes.is_null() {
            // SAFETY: the size exists.
            unsafe { sizes.add(at).write(size) };
        }
        all = all.min(code(size));
    }
    all
}

/// Sends a message, and waits until it has been sent.
///
/// # Safety
/// As [`acp_nbsend_ch`].
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn acp_send_ch(ch: Handle, buf: *const u8, size: usize) -> c_int {
    // SAFETY: as required from the caller.
    code(acp_wait_ch(unsafe { acp_nbsend_ch(ch, buf, size) }))
}

/// Receives a message.
///
/// # Safety
/// As [`acp_nbrecv_ch`].
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn acp_recv_ch(ch: Handle, buf: *mut u8, size: usize) -> c_int {
    // SAFETY: as required from the caller.
    code(acp_wait_ch(unsafe { acp_nbrecv_ch(ch, buf, size) }))
}

/// Returns the code for the result of a wait.
fn code(size: usize) -> c_int {
    if size == FAILED { -1 } else { 0 }
}
