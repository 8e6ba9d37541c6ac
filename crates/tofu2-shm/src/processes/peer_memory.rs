//! Access to memory of the job's other processes that is not in any segment.
//!
//! Each rank opens its own memory image, `/proc/self/mem`, when it first registers existing memory,
//! and passes that file to its peers. An open file refers forever to the memory image it was opened
//! for: after the rank has died, copies move nothing, and no later process with the same number can
//! be reached. No permission to trace is needed either: the file *is* the permission, which only
//! ranks of the job receive, and only if memory is registered.
//!
//! The alternative, `process_vm_readv`, names its target by number. The launcher would have to keep
//! every dead rank as a zombie, and under Yama each rank would have to let its siblings trace it.
//! It is slower for short copies; for long ones it is several times faster with 4-KiB pages and
//! less than twice as fast with huge pages, where staged memory is faster than both (figures:
//! `docs/contract/existing-memory.md`).
//!
//! # The hand-over
//! A rank deposits the file with the launcher's [broker](super::broker), together with the address
//! of a private table of its registered buffers. Peers ask the broker. So addresses come from
//! memory that only their owner writes, and never from shared memory.

use super::{
    broker::{BrokerAddress, Connection},
    cross_copy::{CrossPlace, LONGEST_CALL, in_parts},
    descriptors::above_standard_streams,
    memory_file::refused,
    probe::kept,
};
use crate::memory::{Mapping, regions};
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, Release, SeqCst},
    fence,
};
use rdma_fabric::{FabricError, Rank, RegionKey, RemoteAddr, Result};
use rustix::{
    fs::{self, Mode, OFlags},
    io::{pread, pwrite, retry_on_intr},
};
use std::{
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

/// One process's view of its own and its peers' memory images.
#[derive(Debug)]
pub(crate) struct PeerMemories {
    broker: BrokerAddress,
    me: Rank,
    /// This process's own image once it has been requested, or the reason why there is none.
    own: OnceLock<Result<OwnImage>>,
    /// This process's connection to the broker, once it was needed.
    connection: Mutex<BrokerContact>,
    /// The peers' memories by rank, once requested.
    peers: Box<[OnceLock<Arc<PeerMemory>>]>,
}

/// Returns whether a process on this system could let peers copy: runs the probe, without a job.
pub(crate) fn is_possible() -> bool {
    static PROBED: OnceLock<Result<OwnImage>> = OnceLock::new();
    kept(&PROBED, OwnImage::open).is_ok()
}

/// This process's own image, and the table that peers read through it.
#[derive(Debug)]
struct OwnImage {
    image: OwnedFd,
    /// Descriptors by index in the region table. Never freed: peers may read them as long as the
    /// process lives.
    table: &'static [Descriptor],
}

/// The location of a registered buffer: generation (0: nowhere), address, and length in bytes.
type Descriptor = [AtomicU64; 3];
const DESCRIPTOR: usize = size_of::<Descriptor>();

/// Another process's memory image.
#[derive(Debug)]
pub(super) struct PeerMemory {
    pub(super) image: OwnedFd,
    /// The address of its table.
    table: u64,
}

/// A process's connection to the broker. It lasts from the first deposit or fetch until the process
/// ends, and hence as long as the process may copy.
#[derive(Debug, Default)]
struct BrokerContact {
    connection: Option<Connection>,
    /// Whether the process's own image has been deposited.
    deposited: bool,
}

impl PeerMemories {
    pub(crate) fn new(broker: BrokerAddress, me: Rank, ranks: usize) -> Self {
        let peers = (0..ranks).map(|_| OnceLock::new()).collect();
        PeerMemories { broker, me, own: OnceLock::new(), connection: Mutex::default(), peers }
    }

    /// Returns whether this process can let its peers copy: the result of the probe.
    pub(crate) fn is_possible(&self) -> bool {
        self.own().is_ok()
    }

    fn own(&self) -> Result<&OwnImage> {
        kept(&self.own, OwnImage::open)
    }

    /// Publishes the location of the memory that this rank is about to register as `key`.
    pub(crate) fn offer(&self, key: RegionKey, address: u64, len: usize) -> Result<()> {
        let own = self.own()?;
        let [generation, at, bytes] = &own.table[key.index as usize];
        // Peers that read this concurrently find another generation, or find that the region
        // table's generation has changed.
        generation.store(0, Relaxed);
        fence(Release);
        at.store(address, Relaxed);
        bytes.store(len as u64, Relaxed);
        generation.store(key.generation.into(), Release);
        // Orders the descriptor before the region table's entry, and before a peer's system call
        // that reads it.
        fence(SeqCst);
        let mut contact = self.contact();
        if !contact.deposited {
            let table = own.table.as_ptr().addr() as u64;
            self.connect(&mut contact)?.deposit(own.image.as_fd(), table)?;
            contact.deposited = true;
        }
        Ok(())
    }

    /// Makes the launcher check the job. If it can't be reached, it checks when a process ends.
    pub(crate) fn call_launcher(&self) {
        // Connecting is sufficient; no request is sent.
        drop(self.broker.connect(self.me));
    }

    fn contact(&self) -> MutexGuard<'_, BrokerContact> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect<'v>(&self, contact: &'v mut BrokerContact) -> Result<&'v Connection> {
        match &mut contact.connection {
            Some(connection) => Ok(connection),
            none => Ok(none.insert(self.broker.connect(self.me)?)),
        }
    }

    /// Resolves bytes of existing memory that `addr.rank` registered. `region_len` is the length
    /// from its region table.
    pub(crate) fn resolve(
        &self,
        target: &Arc<Mapping>,
        addr: RemoteAddr,
        len: usize,
        align: usize,
        region_len: usize,
    ) -> Result<CrossPlace> {
        let RemoteAddr { rank, region, offset } = addr;
        let corrupt = FabricError::Corrupt { rank, what: &"the table of its registered memory" };
        let stale = FabricError::StaleRegion { rank, region };
        let peer = self.peer(rank)?;
        let generation_at = regions::generation_at(region.index as usize);
        let life = target.piece(0, 0, generation_at, region.generation).ok_or_else(|| corrupt.clone())?;
        let mut bytes = [0; DESCRIPTOR];
        peer.read_own(rank, peer.table + (region.index as usize * DESCRIPTOR) as u64, &mut bytes)?;
        let number = |index: usize| u64::from_ne_bytes(core::array::from_fn(|byte| bytes[8 * index + byte]));
        // The owner writes a descriptor only after it has advanced the generation.
        fence(SeqCst);
        if life.is_stale() {
            return Err(stale);
        }
        let (generation, address, bytes) = (number(0), number(1), number(2));
        let end = address.checked_add(bytes);
        if generation != u64::from(region.generation) || bytes != region_len as u64 || end.is_none() {
            return Err(corrupt);
        }
        // Inside the region, which the caller has checked against its length.
        let address = address.checked_add(offset).filter(|at| at.checked_add(len as u64) <= end).ok_or(corrupt)?;
        if !address.is_multiple_of(align as u64) {
            return Err(FabricError::misaligned(addr, align));
        }
        Ok(CrossPlace { peer, life, address, len })
    }

    fn peer(&self, rank: Rank) -> Result<Arc<PeerMemory>> {
        let peer = self.peers.get(rank.index()).ok_or(FabricError::NoSuchRank { rank, ranks: self.peers.len() })?;
        if let Some(peer) = peer.get() {
            return Ok(peer.clone());
        }
        let fetched = self.connect(&mut self.contact())?.fetch(rank)?;
        let corrupt = FabricError::Corrupt { rank, what: &"what it says about its memory" };
        // The image was deposited before the region was registered, unless the region is garbage.
        let (image, table) = fetched.ok_or(corrupt.clone())?;
        table.checked_add((crate::memory::layout::SLOTS * DESCRIPTOR) as u64).ok_or(corrupt)?;
        Ok(peer.get_or_init(|| Arc::new(PeerMemory { image, table })).clone())
    }
}

impl OwnImage {
    /// Runs the probe: opens this process's own image, and reads and writes through it.
    fn open() -> Result<Self> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let image = above_standard_streams(|| fs::open("/proc/self/mem", flags, Mode::empty()));
        let image = image.map_err(refused(&"open(/proc/self/mem)"))?;
        let own = OwnImage { image, table: table() };
        let word = &own.table[0][0];
        let at = core::ptr::from_ref(word).addr() as u64;
        word.store(0x1234, SeqCst);
        let mut seen = [0; 8];
        let there = retry_on_intr(|| pread(&own.image, &mut seen, at)).map_err(refused(&"pread(/proc/self/mem)"))?;
        let written = retry_on_intr(|| pwrite(&own.image, &0x5678u64.to_ne_bytes(), at))
            .map_err(refused(&"pwrite(/proc/self/mem)"))?;
        let well = (there, u64::from_ne_bytes(seen), written, word.swap(0, SeqCst)) == (8, 0x1234, 8, 0x5678);
        if well { Ok(own) } else { Err(FabricError::Unsupported { feature: &"cross-memory copies" }) }
    }
}

/// Returns a table in which nothing is registered.
#[cfg(not(fuzzing))]
fn table() -> &'static [Descriptor] {
    let table: Box<[Descriptor]> = (0..crate::memory::layout::SLOTS).map(|_| Descriptor::default()).collect();
    Box::leak(table)
}

/// Returns the only table of a process that is many ranks in turn: tables are never freed, so one
/// per rank would fill memory.
#[cfg(fuzzing)]
fn table() -> &'static [Descriptor] {
    static TABLE: [Descriptor; crate::memory::layout::SLOTS] =
        [const { [const { AtomicU64::new(0) }; 3] }; crate::memory::layout::SLOTS];
    &TABLE
}

impl PeerMemory {
    /// Reads from the peer's own tables.
    fn read_own(&self, rank: Rank, at: u64, bytes: &mut [u8]) -> Result<()> {
        in_parts(bytes.len(), LONGEST_CALL, |done, part| {
            retry_on_intr(|| pread(&self.image, &mut bytes[done..done + part], at + done as u64))
        })
        .map_err(|stopped| match stopped.error {
            None => FabricError::PeerLost { rank },
            Some(errno) => refused(&"pread(/proc/self/mem)")(errno),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::layout;
    use rustix::event::{PollFd, PollFlags, poll};

    /// Creates a rank and its segment, as seen by a peer in the same process, and a launcher's
    /// thread that serves them until they are dropped.
    fn one_rank() -> (PeerMemories, Arc<Mapping>) {
        let address = BrokerAddress::for_test();
        let mut broker = address.listen().unwrap();
        std::thread::spawn(move || {
            let mut came = false;
            while !came || broker.files().count() > 1 {
                let mut files: Vec<_> =
                    broker.files().map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)).collect();
                poll(&mut files, None).unwrap();
                let ready: Vec<_> = files.iter().map(|file| !file.revents().is_empty()).collect();
                drop(files);
                broker.serve(ready);
                came |= broker.files().count() > 1;
            }
        });
        let segment = Mapping::in_process(layout::HEAP + 64, layout::HEAP).unwrap();
        (PeerMemories::new(address, Rank::new(0), 1), segment)
    }

    fn addr(region: RegionKey, offset: u64) -> RemoteAddr {
        RemoteAddr { rank: Rank::new(0), region, offset }
    }

    #[test]
    fn bytes_go_both_ways_and_stop_at_the_end() {
        let (peers, segment) = one_rank();
        let memory: Box<[AtomicU64]> = (0..600).map(AtomicU64::new).collect();
        let key = regions::next_key(&segment, 2000);
        let len = 8 * memory.len();
        assert!(peers.peer(Rank::new(0)).is_err(), "nothing sent yet");
        peers.offer(key, memory.as_ptr().addr() as u64, len).unwrap();
        regions::register(&segment, 2000, 0, len, regions::RegionKind::Adopted);
        for _ in 0..2 {
            let place = peers.resolve(&segment, addr(key, 16), 8, 8, len).unwrap();
            let mut seen = [0; 8];
            place.read(&mut seen, addr(key, 16)).unwrap();
            assert_eq!(u64::from_ne_bytes(seen), 2);
        }
        let place = peers.resolve(&segment, addr(key, 8), len - 8, 8, len).unwrap().part(8, 16).unwrap();
        place.write(&[7; 16], addr(key, 16)).unwrap();
        let seen: Vec<u64> = memory.iter().take(5).map(|word| word.load(SeqCst)).collect();
        assert_eq!(seen, [0, 1, 0x0707_0707_0707_0707, 0x0707_0707_0707_0707, 4]);
        assert!(place.part(8, 9).is_none());
        let misaligned = peers.resolve(&segment, addr(key, 3), 4, 4, len).unwrap_err();
        assert!(
            matches!(&misaligned, FabricError::Misaligned(at) if (at.addr.offset, at.align) == (3, 4)),
            "{misaligned}"
        );
        for (offset, bytes, region_len) in [(0, len, len + 8), (8, len, len), (u64::MAX, 2, len)] {
            let error = peers.resolve(&segment, addr(key, offset), bytes, 1, region_len).unwrap_err();
            assert!(matches!(error, FabricError::Corrupt { .. }), "{error}");
        }
        regions::deregister(&segment, 2000);
        let stale = FabricError::StaleRegion { rank: Rank::new(0), region: key };
        assert_eq!(peers.resolve(&segment, addr(key, 0), 8, 8, len).unwrap_err(), stale);
        drop(memory);
    }

    #[test]
    fn an_address_without_memory_is_an_error() {
        let (peers, segment) = one_rank();
        let key = regions::next_key(&segment, 2000);
        peers.offer(key, 4096, 8192).unwrap();
        regions::register(&segment, 2000, 0, 8192, regions::RegionKind::Adopted);
        let place = peers.resolve(&segment, addr(key, 0), 8192, 8, 8192).unwrap();
        let error = place.write(&[1; 8192], addr(key, 0)).unwrap_err();
        assert!(matches!(&error, FabricError::CrossCopy(copy) if (copy.moved, copy.len) == (0, 8192)), "{error}");
    }

    #[test]
    fn a_dead_image_moves_nothing() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let image = fs::open(format!("/proc/{}/mem", child.id()), OFlags::RDWR, Mode::empty());
        child.kill().unwrap();
        child.wait().unwrap();
        // This can't be tested if other processes' images can't be opened.
        let Ok(image) = image else { return eprintln!("skipped: no permission to open a child's memory") };
        let peer = PeerMemory { image, table: 0x1000 };
        let error = peer.read_own(Rank::new(3), 0x1000, &mut [0; 8]).unwrap_err();
        assert_eq!(error, FabricError::PeerLost { rank: Rank::new(3) });
    }
}
