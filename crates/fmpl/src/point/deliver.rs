//! The body of a message on its way into the receive buffer.

use crate::{
    FmplError, Result,
    area::{Ends, Kind, Lane, Record},
    cost,
};
use rdma_fabric::{Fabric, Handle, LocalSpan, Refused, RemoteSpan, op::Put};

/// Where a message's bytes are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<'a> {
    /// In memory of the program.
    Slice(&'a [u8]),
    /// In own memory of the fabric.
    Span(&'a LocalSpan<u8>),
}

impl Body<'_> {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Body::Slice(slice) => slice.len(),
            Body::Span(span) => span.len(),
        }
    }
}

/// Message `n` of a lane, from the moment at which its receive is known.
pub(crate) struct Message<'a> {
    pub(crate) fabric: &'a Fabric,
    pub(crate) ends: &'a Ends,
    pub(crate) lane: usize,
    pub(crate) n: u64,
}

/// Puts a message where its receive wants it, then says so. From the first poll on it is sent, even
/// if the future is dropped. The target is resolved by `resolved`, or as the header says.
pub(crate) async fn deliver(
    message: Message<'_>,
    header: Record,
    resolved: Option<RemoteSpan<u8>>,
    body: Body<'_>,
) -> Result<RemoteSpan<u8>> {
    let Message { fabric, ends, lane, n } = message;
    let lane = Lane::new(fabric, ends, lane);
    let mut owed = Owed { message: Some(message), word: Record::first_word(Kind::Arrived, body.bytes(), n) };
    let found = match resolved {
        Some(span) => Ok(span),
        None => fabric.remote_span::<u8>(header.at(lane.peer()), header.bytes),
    };
    let posted = match &found {
        Ok(span) => post(fabric, span, body).await,
        Err(error) => Err(error.clone().into()),
    };
    if posted.is_err() {
        owed.word = Record::first_word(Kind::NotThere, body.bytes(), n);
    }
    let put = if fabric.caps().puts_in_order {
        let flag = lane.post_flag(n, owed.word).await?;
        owed.message = None;
        let put = left(fabric, posted).await;
        if let Some(flag) = flag {
            flag.await?;
        }
        put
    } else {
        let put = left(fabric, posted).await;
        if put.is_err() {
            owed.word = Record::first_word(Kind::NotThere, body.bytes(), n);
        }
        fabric.flush(lane.peer()).await?;
        lane.put_flag(n, owed.word).await?;
        owed.message = None;
        put
    };
    put.and(found.map_err(FmplError::from))
}

/// A body that was posted.
enum Posted {
    Left,
    Slice(Handle<()>),
    Span(Handle<LocalSpan<u8>>),
}

async fn post(fabric: &Fabric, to: &RemoteSpan<u8>, body: Body<'_>) -> Result<Posted> {
    let to = to.part(0..body.bytes())?;
    match body {
        Body::Slice(slice) => match fabric.try_put_slice(&to, slice, None) {
            Ok(handle) => Ok(Posted::Slice(handle)),
            Err(Refused::Full(())) => Ok(fabric.put_slice(&to, slice).await.map(|()| Posted::Left)?),
            Err(Refused::Failed(error, ())) => Err(error.into()),
        },
        Body::Span(span) => {
            let put = Put { to: &to, from: LocalSpan::clone(span), notice: None };
            Ok(Posted::Span(fabric.post(put).await?))
        }
    }
}

/// Waits until a body has left, and charges for it.
async fn left(fabric: &Fabric, posted: Result<Posted>) -> Result<()> {
    fabric.charge(cost::DATA).await;
    match posted? {
        Posted::Left => Ok(()),
        Posted::Slice(handle) => Ok(handle.await?),
        Posted::Span(handle) => Ok(handle.await.map(drop)?),
    }
}

/// The flag of a message whose body may be on its way.
struct Owed<'a> {
    message: Option<Message<'a>>,
    word: u64,
}

impl Drop for Owed<'_> {
    fn drop(&mut self) {
        let Some(Message { fabric, ends, lane, n }) = self.message.take() else { return };
        let (own, ends, word) = (fabric.clone(), ends.clone(), self.word);
        fabric.detach(async move {
            let lane = Lane::new(&own, &ends, lane);
            // Nobody is left to be told of an error.
            if own.flush(lane.peer()).await.is_ok() {
                let _ = lane.put_flag_owed(n, word).await;
            }
        });
    }
}
