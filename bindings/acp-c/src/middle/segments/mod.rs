//! Segmented buffers, over memory of the program.
//!
//! The connected memory is the library's own, of the same size. A segment is copied from the
//! program's buffer when it is handed over, and into that of the destination before a call reports
//! that it has arrived.

#![allow(unsafe_code, reason = "exported names, and the buffers of the program")]

mod side;

use super::{
    call::{CallError, Result, call},
    handles::Handle,
    state,
    types::rank,
};
use acp::{Acp, GlobalAddress};
use core::{ffi::c_int, ptr};
pub(super) use side::Side;
use side::{DISCONNECTED, Kind, WRONG_SIDE, either, used};

/// Creates the source for a rank.
///
/// # Safety
/// There are `segments` segments of `bytes` bytes at `buf`. The program leaves those alone that
/// the library owns, until the side is freed.
// SAFETY: the name is ACP's; a program has one ACP.
#[unsafe(no_mangle)]
unsafe extern "C" fn acp_create_src_segbuf(to: c_int, buf: *mut u8, bytes: usize, segments: usize) -> Handle {
    call("acp_create_src_segbuf", ptr::null_mut(), async |acp| {
        create(acp, buf, bytes, segments, async |memory| {
            let mut side = acp.segment_source(rank(to)?, memory, bytes, segments).await?;
            side.start_connect()?;
            Ok(Kind::Source(side))
        })
        .await
    })
}

/// Creates the destination for a rank.
///
/// # Safety
/// As [`acp_create_src_segbuf`].
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn acp_create_dst_segbuf(from: c_int, buf: *mut u8, bytes: usize, segments: usize) -> Handle {
    call("acp_create_dst_segbuf", ptr::null_mut(), async |acp| {
        create(acp, buf, bytes, segments, async |memory| {
            let mut side = acp.segment_destination(rank(from)?, memory, bytes, segments).await?;
            side.start_connect()?;
            Ok(Kind::Destination(side, 0))
        })
        .await
    })
}

async fn create(
    acp: &Acp,
    program: *mut u8,
    segment_bytes: usize,
    segments: usize,
    side: impl AsyncFnOnce(GlobalAddress) -> Result<Kind>,
) -> Result<Handle> {
    let bytes = segment_bytes.checked_mul(segments).filter(|bytes| *bytes > 0 && !program.is_null());
    let key = acp.allocate(bytes.ok_or(CallError::Argument("segments without memory"))?, 0)?;
    let made = async {
        let memory = acp.address(key, 0)?;
        Ok((memory, side(memory).await?))
    };
    match made.await {
        Ok((memory, kind)) => {
            let segments = segments as u64;
            let side = Side { kind, key, memory, program, segment_bytes, segments, disconnected: false };
            state::add(side, |objects| &mut objects.segments)
        }
        Err(error) => {
            acp.unregister(key)?;
            Err(error)
        }
    }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_connect_segbuf(of: Handle) -> c_int {
    call("acp_connect_segbuf", -1, async |_| {
        used(of, async |side| match &mut side.kind {
            _ if side.disconnected => Err(DISCONNECTED),
            Kind::Source(source) => Ok(source.connect().await.map(|()| 0)?),
            Kind::Destination(destination, _) => Ok(destination.connect().await.map(|()| 0)?),
        })
        .await
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_isconnected_segbuf(of: Handle) -> c_int {
    call("acp_isconnected_segbuf", -1, async |_| {
        used(of, async |side| {
            if side.disconnected {
                return Err(DISCONNECTED);
            }
            if !either!(&side.kind, was_connected)? {
                return Ok(1);
            }
            let has_segments = match &side.kind {
                Kind::Destination(side, _) => side.head()? < side.tail()?,
                Kind::Source(_) => false,
            };
            // A source may have disconnected before what it has sent is taken.
            match has_segments || either!(&side.kind, is_connected)? {
                true => Ok(0),
                false => Err(DISCONNECTED),
            }
        })
        .await
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_ack_segbuf(of: Handle) -> c_int {
    call("acp_ack_segbuf", -1, async |acp| {
        used(of, async |side| {
            side.check()?;
            let Kind::Source(source) = &side.kind else { return Err(WRONG_SIDE) };
            if source.is_ready()? {
                let (to, from) = side.segment(source.tail()?)?;
                // SAFETY: the program has lent as much memory, and now hands this segment over.
                acp.write(to, unsafe { core::slice::from_raw_parts(from, side.segment_bytes) }).await?;
            }
            Ok(source.ack().map(|()| 0)?)
        })
        .await
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_ready_segbuf(of: Handle) -> c_int {
    call("acp_ready_segbuf", -1, async |acp| {
        used(of, async |side| {
            side.check()?;
            side.look(acp).await?;
            let Kind::Destination(destination, _) = &side.kind else { return Err(WRONG_SIDE) };
            Ok(destination.ready().map(|()| 0)?)
        })
        .await
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_isready_segbuf(of: Handle) -> c_int {
    call("acp_isready_segbuf", -1, async |_| {
        used(of, async |side| {
            side.check()?;
            let Kind::Source(source) = &side.kind else { return Err(WRONG_SIDE) };
            Ok(c_int::from(!source.is_ready()?))
        })
        .await
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_isacked_segbuf(of: Handle) -> c_int {
    call("acp_isacked_segbuf", -1, async |acp| {
        used(of, async |side| {
            side.check()?;
            side.look(acp).await?;
            match &side.kind {
                Kind::Destination(side, copied) if side.head()? < *copied => Ok(0),
                Kind::Destination(side, _) if side.is_connected()? => Ok(1),
                Kind::Destination(..) => Err(DISCONNECTED),
                Kind::Source(_) => Err(WRONG_SIDE),
            }
        })
        .await
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_query_segbuf_head(of: Handle) -> i64 {
    index("acp_query_segbuf_head", of, |kind| Ok(either!(kind, head)?))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_query_segbuf_tail(of: Handle) -> i64 {
    index("acp_query_segbuf_tail", of, |kind| Ok(either!(kind, tail)?))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_query_segbuf_sent(of: Handle) -> i64 {
    index("acp_query_segbuf_sent", of, |kind| match kind {
        Kind::Source(source) => Ok(source.sent()?),
        Kind::Destination(..) => Err(WRONG_SIDE),
    })
}

/// Returns the index of the segment that a counter denotes.
fn index(name: &'static str, of: Handle, counter: fn(&Kind) -> Result<u64>) -> i64 {
    call(name, -1, async |acp| {
        used(of, async |side| {
            side.check()?;
            side.look(acp).await?;
            Ok((counter(&side.kind)? % side.segments) as i64)
        })
        .await
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_disconnect_segbuf(of: Handle) -> c_int {
    call("acp_disconnect_segbuf", -1, async |_| {
        used(of, async |side| {
            side.check()?;
            side.disconnected = true;
            either!(&mut side.kind, start_disconnect)?;
            Ok(0)
        })
        .await
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_free_segbuf(of: Handle) -> c_int {
    call("acp_free_segbuf", -1, async |acp| {
        used(of, async |side| {
            if !side.disconnected {
                return Err(CallError::Argument("a segmented buffer that is still connected"));
            }
            // A side that has failed is freed as well.
            let _ = match &mut side.kind {
                Kind::Source(source) => source.disconnect().await,
                Kind::Destination(destination, _) => destination.disconnect().await,
            };
            Ok(())
        })
        .await?;
        let side = state::with(|objects| objects.segments.take(of))?;
        match side.kind {
            Kind::Source(source) => source.free().map_err(|(error, _)| error)?,
            Kind::Destination(destination, _) => destination.free().map_err(|(error, _)| error)?,
        }
        acp.unregister(side.key)?;
        Ok(0)
    })
}
