//! The launcher's broker, through which a job's ranks pass files to each other.
//!
//! A rank deposits the open file of its memory image once, together with a number; peers request
//! both. The broker is a separate named socket, so that no rank needs to inherit one socket per
//! peer or take over a descriptor that it did not open. A client must run as the launcher's user,
//! or as root, and know the job's secret, which is in the control block. A connection lasts as long
//! as the client's process, which may be copying all that time.

use super::{
    descriptors::{above_standard_streams, renumbered},
    memory_file::refused,
};
use crate::{job::Control, memory::layout};
use core::{mem::MaybeUninit, sync::atomic::Ordering::Relaxed};
use rdma_fabric::{Rank, Result};
use rustix::{
    io::{Errno, retry_on_intr},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, recvmsg, sendmsg,
        socket_with, sockopt::socket_peercred,
    },
    process::geteuid,
};
use std::{
    collections::HashMap,
    io::{IoSlice, IoSliceMut},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

/// The start of each message: name and version.
const MAGIC: u64 = u64::from_le_bytes(*b"1s-brok\x01");

/// A request: [`MAGIC`], the job's secret, the requesting rank, the kind of request, the rank that
/// it concerns, and a number.
type Request = [u64; 6];
/// An answer: [`MAGIC`], the outcome, and a number.
type Answer = [u64; 3];

/// A request or an answer, and the file attached to it.
type Message<const N: usize> = ([u64; N], Option<OwnedFd>);

const DEPOSIT: u64 = 0;
const FETCH: u64 = 1;

const DONE: u64 = 0;
const NOTHING: u64 = 1;
/// The launcher has reached its limit of open files.
const NO_ROOM: u64 = 2;

/// The maximum number of connections that wait to be accepted.
const QUEUE: i32 = 4096;

/// The broker's address, and the secret that grants access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BrokerAddress {
    job: u64,
    secret: u64,
}

impl BrokerAddress {
    /// Returns the address for the job with this control block.
    pub(crate) fn of(control: &Control) -> Self {
        let word = |at| control.word(at).load(Relaxed);
        BrokerAddress { job: word(layout::JOB), secret: word(layout::SECRET) }
    }

    /// Returns the address of a broker that a rank opens, with a number and a secret known to its
    /// clients.
    pub(crate) fn new(job: u64, secret: u64) -> Self {
        BrokerAddress { job, secret }
    }

    #[cfg(test)]
    pub(crate) fn for_test() -> Self {
        use core::sync::atomic::AtomicU64;
        static JOBS: AtomicU64 = AtomicU64::new(0);
        BrokerAddress { job: u64::from(std::process::id()) << 32 | JOBS.fetch_add(1, Relaxed), secret: 7 }
    }

    /// Returns the socket's abstract name, which vanishes with the socket.
    fn address(self) -> Result<SocketAddrUnix> {
        SocketAddrUnix::new_abstract_name(format!("onesided-{:016x}", self.job).as_bytes()).map_err(refused(&"bind"))
    }

    /// Opens the broker. Connections of unauthenticated processes are refused.
    pub(crate) fn listen(self) -> Result<Broker> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = above_standard_streams(|| socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None));
        let listener = listener.map_err(refused(&"socket"))?;
        bind(&listener, &self.address()?).map_err(refused(&"bind"))?;
        listen(&listener, QUEUE).map_err(refused(&"listen"))?;
        Ok(Broker { address: self, listener, clients: Vec::new(), deposits: HashMap::new(), fetched: 0 })
    }

    /// Connects as `me`. Blocks while the launcher is still starting other ranks.
    pub(crate) fn connect(self, me: Rank) -> Result<Connection> {
        let flags = SocketFlags::CLOEXEC;
        let socket = above_standard_streams(|| socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None));
        let socket = socket.map_err(refused(&"socket"))?;
        let address = self.address()?;
        retry_on_intr(|| connect(&socket, &address)).map_err(refused(&"connect"))?;
        Ok(Connection { socket, me, secret: self.secret })
    }
}

/// A rank's connection to the broker.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    me: Rank,
    secret: u64,
}

impl Connection {
    /// Deposits `file` and `number` for the others.
    pub(crate) fn deposit(&self, file: BorrowedFd<'_>, number: u64) -> Result<()> {
        match self.ask(DEPOSIT, self.me, number, Some(file))? {
            ([_, DONE, _], _) => Ok(()),
            _ => Err(refused(&"recvmsg (launcher)")(Errno::MFILE)),
        }
    }

    /// Returns the deposit of rank `of`, if there is one.
    pub(crate) fn fetch(&self, of: Rank) -> Result<Option<(OwnedFd, u64)>> {
        match self.ask(FETCH, of, 0, None)? {
            ([_, DONE, number], Some(file)) => Ok(Some((file, number))),
            // The answer arrives without its file only if this process has reached its limit of
            // open files.
            ([_, DONE, _], None) => Err(refused(&"recvmsg")(Errno::MFILE)),
            _ => Ok(None),
        }
    }

    fn ask(&self, what: u64, of: Rank, number: u64, file: Option<BorrowedFd<'_>>) -> Result<Message<3>> {
        let request: Request = [MAGIC, self.secret, self.me.number().into(), what, of.number().into(), number];
        send(&self.socket, &request, file, SendFlags::NOSIGNAL).map_err(refused(&"sendmsg"))?;
        match receive::<3>(&self.socket, RecvFlags::empty()).map_err(refused(&"recvmsg"))? {
            Some((answer @ [MAGIC, ..], file)) => Ok((answer, file)),
            // The launcher has ended, so this process is about to be killed.
            _ => Err(refused(&"recvmsg")(Errno::CONNRESET)),
        }
    }
}

/// The launcher's side: accepts connections and answers requests. It never blocks.
#[derive(Debug)]
pub(crate) struct Broker {
    address: BrokerAddress,
    listener: OwnedFd,
    clients: Vec<Client>,
    /// The deposits, by rank.
    deposits: HashMap<u64, (OwnedFd, u64)>,
    /// The number of requests for a deposit that were granted.
    fetched: usize,
}

#[derive(Debug)]
struct Client {
    socket: OwnedFd,
    /// The client's rank, once it has proved that it knows the secret.
    rank: Option<u64>,
}

impl Broker {
    /// Deposits `file` for `rank`, in whose process the broker runs.
    pub(crate) fn deposit(&mut self, rank: Rank, file: OwnedFd) {
        self.deposits.insert(rank.number().into(), (file, 0));
    }

    /// Returns the number of requests for a deposit that were granted.
    pub(crate) fn fetched(&self) -> usize {
        self.fetched
    }

    /// Returns the files that become readable when there is work: the listening socket, then each
    /// client's.
    pub(crate) fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.listener.as_fd()].into_iter().chain(self.clients.iter().map(|client| client.socket.as_fd()))
    }

    /// Accepts connections and answers requests on those files of [`Broker::files`] that are
    /// `ready` (in the same order).
    pub(crate) fn serve(&mut self, ready: impl IntoIterator<Item = bool>) {
        let mut ready = ready.into_iter();
        let connecting = ready.next().unwrap_or(false);
        let Broker { address, clients, deposits, fetched, .. } = self;
        clients.retain_mut(|client| !ready.next().unwrap_or(false) || client.serve(*address, deposits, fetched));
        let accept = || retry_on_intr(|| accept_with(&self.listener, SocketFlags::CLOEXEC)).and_then(renumbered);
        while connecting && let Ok(socket) = accept() {
            let ours = socket_peercred(&socket).is_ok_and(|peer| peer.uid.is_root() || peer.uid == geteuid());
            if ours {
                self.clients.push(Client { socket, rank: None });
            }
        }
    }

    /// Returns whether a process of `rank` is connected, and so may still run.
    pub(crate) fn is_connected(&mut self, rank: Rank) -> bool {
        let number = Some(u64::from(rank.number()));
        let Broker { address, clients, deposits, fetched, .. } = self;
        clients.retain_mut(|client| client.rank != number || client.serve(*address, deposits, fetched));
        clients.iter().any(|client| client.rank == number)
    }
}

impl Client {
    /// Answers the client's requests. Returns false if the client has disconnected or is not a rank
    /// of the job.
    fn serve(
        &mut self,
        address: BrokerAddress,
        deposits: &mut HashMap<u64, (OwnedFd, u64)>,
        fetched: &mut usize,
    ) -> bool {
        loop {
            let (request, file) = match receive(&self.socket, RecvFlags::DONTWAIT) {
                Ok(Some((request, file))) => (request, file),
                Err(Errno::AGAIN) => return true,
                _ => return false,
            };
            let [MAGIC, secret, me, what, of, number]: Request = request else { return false };
            if secret != address.secret {
                return false;
            }
            self.rank = Some(me);
            let (answer, file): (Answer, _) = match (what, file) {
                (DEPOSIT, None) => ([MAGIC, NO_ROOM, 0], None),
                (DEPOSIT, Some(file)) => {
                    deposits.insert(me, (file, number));
                    ([MAGIC, DONE, 0], None)
                }
                _ => match deposits.get(&of) {
                    Some((file, number)) => {
                        *fetched += 1;
                        ([MAGIC, DONE, *number], Some(file.as_fd()))
                    }
                    None => ([MAGIC, NOTHING, 0], None),
                },
            };
            if send(&self.socket, &answer, file, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).is_err() {
                return false;
            }
        }
    }
}

fn send<const N: usize>(
    socket: &OwnedFd,
    words: &[u64; N],
    file: Option<BorrowedFd<'_>>,
    flags: SendFlags,
) -> Result<(), Errno> {
    let bytes = words.map(u64::to_ne_bytes).concat();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files: Vec<_> = file.into_iter().collect();
    if !files.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(&files));
        debug_assert!(fits);
    }
    retry_on_intr(|| sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, flags)).map(drop)
}

/// Returns the next message; `None` if there are no more or it is malformed.
fn receive<const N: usize>(socket: &OwnedFd, flags: RecvFlags) -> Result<Option<Message<N>>, Errno> {
    let mut bytes = vec![0; 8 * N];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let message = retry_on_intr(|| recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags))?;
    let file = control.drain().find_map(|part| match part {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    let file = file.map(renumbered).transpose()?;
    if message.bytes != bytes.len() {
        return Ok(None);
    }
    let word = |index: usize| u64::from_ne_bytes(core::array::from_fn(|byte| bytes[8 * index + byte]));
    Ok(Some((core::array::from_fn(word), file)))
}
