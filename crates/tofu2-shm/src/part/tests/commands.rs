//! Control queues of two nodes; this process transports their commands from one node to the other.

use super::*;
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Inline, MrqKind, Posting, QueueError, QueueMode, QueueSpec, Stadd, Width},
};
use rdma_fabric::{Amo, LocalSpan};
use std::{collections::VecDeque, sync::MutexGuard};

/// The maximum number of bytes sent with a command here.
const INLINE: usize = 100;
const BYTES: usize = 1000;

/// The connection between the nodes.
struct Between {
    parts: Vec<Part>,
    sent: Arc<Mutex<VecDeque<(RemoteCommand, Payload)>>>,
}

impl Between {
    fn new() -> Self {
        let (parts, sent) = (parts(&[&[0], &[1]]), Arc::<Mutex<VecDeque<_>>>::default());
        for part in &parts {
            let sent = sent.clone();
            part.on_command(INLINE, move |command, payload| sent.lock().unwrap().push_back((command, payload)), || ());
        }
        Between { parts, sent }
    }

    fn sent(&self) -> MutexGuard<'_, VecDeque<(RemoteCommand, Payload)>> {
        self.sent.lock().unwrap()
    }

    /// Transports the next command. Returns whether there was one.
    fn carry_one(&self) -> bool {
        let Some((command, payload)) = self.sent().pop_front() else { return false };
        let again = RemoteCommand::from_bytes(command.from().rank(), &command.to_bytes()).unwrap().0;
        let (there, home) = (&self.parts[command.target().index()], &self.parts[command.from().rank().index()]);
        let bytes = if let Payload::Bytes(bytes) = &payload { &bytes[..] } else { &[] };
        let reply = match there.execute_remote(&again, bytes, matches!(payload, Payload::Memory(..))) {
            Executed::Complete(reply) => reply,
            Executed::Move(region, at) => {
                let Payload::Memory(own, from) = payload else { panic!("{command:?} was short") };
                let (home, there) = ((home, own, from), (there, region, at));
                let (from, to) = if command.is_put() { (home, there) } else { (there, home) };
                let bytes = read(from.0, from.1, from.2, command.len());
                to.0.fabric().write(&span(to.0, to.1, to.2, command.len()), &bytes).unwrap();
                there.0.moved(&command, region, true)
            }
        };
        home.replied(&command, &RemoteReply::from_bytes(&reply.to_bytes()).unwrap());
        true
    }

    fn carry(&self) {
        while self.carry_one() {}
    }

    /// Opens a queue of a rank, with 1000 bytes under tag 3.
    fn open(&self, rank: usize, mode: QueueMode) -> (ControlQueue, Region) {
        let fabric = self.parts[rank].fabric();
        let (region, queue) =
            (fabric.alloc(BYTES).unwrap(), ControlQueue::open(&fabric, QueueSpec::new(mode)).unwrap());
        queue.register_fixed(&region, 3).unwrap();
        (queue, region)
    }
}

fn set(part: &Part, region: &Region, bytes: &[u8]) {
    let fabric = part.fabric();
    fabric.write(&region.span::<u8>(&fabric, 0, bytes.len()).unwrap(), bytes).unwrap();
}

fn get(part: &Part, region: &Region) -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    part.fabric().read(&region.span::<u8>(&part.fabric(), 0, BYTES).unwrap(), &mut bytes).unwrap();
    bytes
}

const AT: Stadd = Stadd::fixed(3);

/// Returns bytes of a region of a rank, given as an offset in its heap.
fn span(part: &Part, region: RegionKey, at: u64, len: usize) -> LocalSpan<u8> {
    let offset = at - part.locate(region).unwrap().at;
    let fabric = part.fabric();
    fabric.local_span(RemoteAddr { rank: fabric.rank(), region, offset }, len).unwrap()
}

fn read(part: &Part, region: RegionKey, at: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    part.fabric().read(&span(part, region, at, len), &mut bytes).unwrap();
    bytes
}

#[test]
fn every_command_is_carried_out_elsewhere() {
    let between = Between::new();
    let ((queue, own), (there, theirs)) = (between.open(0, QueueMode::Normal), between.open(1, QueueMode::Normal));
    let to = there.id();
    set(&between.parts[0], &own, &[5; BYTES]);
    let add = Command::Atomic { to, at: AT + 8, width: Width::Eight, amo: Amo::Add(1) };
    let long = BYTES as u32;
    let commands = [
        (Command::put(to, AT, AT, 40), MrqKind::LocalPut, MrqKind::RemotePut),
        (Command::put(to, AT, AT, long), MrqKind::LocalPut, MrqKind::RemotePut),
        (Command::PutInline { to, bytes: Inline::word(9), at: AT + 8 }, MrqKind::LocalPut, MrqKind::RemotePut),
        (add, MrqKind::LocalAtomic, MrqKind::RemoteAtomic),
        (Command::get(to, AT, AT, 40), MrqKind::LocalGet, MrqKind::RemoteGet),
        (Command::get(to, AT, AT, long), MrqKind::LocalGet, MrqKind::RemoteGet),
    ];
    for (tag, (command, local, remote)) in (0..).zip(commands) {
        let posting = Posting::new(command).tcq(tag.into()).local(tag).remote(tag);
        queue.try_post(posting).unwrap();
        assert_eq!((queue.poll_mrq(), there.poll_mrq()), (Ok(None), Ok(None)), "{command:?} has not gone");
        between.carry();
        let (here, arrived) = (queue.poll_mrq().unwrap().unwrap(), there.poll_mrq().unwrap().unwrap());
        assert_eq!((here.kind, here.peer, here.edata, here.status), (local, to, tag, Ok(())));
        assert_eq!((arrived.kind, arrived.peer, arrived.edata), (remote, queue.id(), tag));
        assert_eq!(here.value, if command == add { 9 } else { 0 });
        assert_eq!(queue.poll_tcq().unwrap().map(|done| (done.tag, done.status)), Some((tag.into(), Ok(()))));
    }
    let mut wanted = vec![5; BYTES];
    wanted[8..16].copy_from_slice(&10u64.to_ne_bytes());
    assert_eq!(get(&between.parts[1], &theirs), wanted);
    assert_eq!(get(&between.parts[0], &own), wanted);
}

#[test]
fn an_arrival_releases_the_commands_that_answer_it() {
    let between = Between::new();
    let ((first, own), (second, theirs)) = (between.open(0, QueueMode::Session), between.open(1, QueueMode::Session));
    let sender = ControlQueue::open(&between.parts[0].fabric(), QueueSpec::new(QueueMode::Normal)).unwrap();
    for lap in 0..20u64 {
        let put = |to, lap| Command::PutInline { to, bytes: Inline::word(lap), at: AT + 8 * lap };
        first.try_post(Posting::new(put(second.id(), lap)).sps(1)).unwrap();
        second.try_post(Posting::new(put(first.id(), lap)).sps(1)).unwrap();
    }
    assert!(!between.carry_one(), "without credit");
    sender
        .try_post(Posting::new(Command::PutInline { to: first.id(), bytes: Inline::word(0), at: AT }).sps(1))
        .unwrap();
    between.carry();
    let wanted: Vec<u8> = (0..20u64).flat_map(u64::to_ne_bytes).collect();
    assert_eq!(get(&between.parts[0], &own)[..160], wanted);
    assert_eq!(get(&between.parts[1], &theirs)[..160], wanted);
}

#[test]
fn completions_wait_for_those_before_them() {
    for mode in [QueueMode::Normal, QueueMode::Session] {
        let between = Between::new();
        let fabric = between.parts[0].fabric();
        let queue =
            ControlQueue::open(&fabric, QueueSpec::new(mode).ahead(if mode == QueueMode::Session { 9 } else { 0 }))
                .unwrap();
        let region = fabric.alloc(BYTES).unwrap();
        queue.register_fixed(&region, 3).unwrap();
        let (there, _theirs) = between.open(1, QueueMode::Normal);
        let (long, short) = (Command::put(there.id(), AT, AT, 500), Command::put(there.id(), AT, AT, 50));
        for (tag, command) in (0..).zip([short, long, Command::Nop, short, long]) {
            queue.try_post(Posting::new(command).tcq(tag)).unwrap();
        }
        let taken = || core::iter::from_fn(|| queue.poll_tcq().unwrap()).map(|done| done.tag).collect::<Vec<_>>();
        assert_eq!(taken(), [0], "{mode:?}: a short one is done with its bytes");
        between.carry_one();
        assert!(taken().is_empty());
        between.carry_one();
        assert_eq!(taken(), [1, 2, 3]);
        between.carry();
        assert_eq!(taken(), [4]);
    }
}

#[test]
fn a_command_that_finds_nothing_is_told_so() {
    let between = Between::new();
    let ((queue, _own), (there, theirs)) = (between.open(0, QueueMode::Normal), between.open(1, QueueMode::Normal));
    let to = there.id();
    let outcome = |command: Command| {
        queue.try_post(Posting::new(command).local(0)).unwrap();
        between.carry();
        queue.poll_mrq().unwrap().unwrap().status
    };
    let outside = QueueError::OutOfBounds { queue: to, stadd: AT + 900, len: 200, registered: BYTES as u64 };
    assert_eq!(outcome(Command::put(to, AT, AT + 900, 200)), Err(outside));
    let nowhere = QueueError::NoSuchTag { queue: to, stadd: Stadd::fixed(4) };
    assert_eq!(outcome(Command::put(to, AT, Stadd::fixed(4), 8)), Err(nowhere));
    there.set_read_only(AT, true).unwrap();
    let read_only = QueueError::ReadOnly { queue: to, stadd: AT };
    assert_eq!([8, 200].map(|len| outcome(Command::put(to, AT, AT, len))), [Err(read_only); 2]);
    assert_eq!(outcome(Command::get(to, AT, AT, 200)), Ok(()));
    drop(theirs);
    let stale = QueueError::Stale { queue: to, stadd: AT };
    assert_eq!([8, 200].map(|len| outcome(Command::get(to, AT, AT, len))), [Err(stale); 2]);
    drop(there);
    assert_eq!(outcome(Command::put(to, AT, AT, 8)), Err(QueueError::NotOpen(to)));
}

#[test]
fn a_queue_has_a_bounded_number_under_way() {
    let between = Between::new();
    let ((queue, _own), (there, _theirs)) = (between.open(0, QueueMode::Normal), between.open(1, QueueMode::Normal));
    let put = Posting::new(Command::put(there.id(), AT, AT, 8));
    let posted = (0..1000).take_while(|_| queue.try_post(put).is_ok()).count();
    assert_eq!(between.sent().len(), posted);
    assert!(posted < 1000);
    between.carry_one();
    assert!(queue.try_post(put).is_ok() && queue.try_post(put).is_err());
    assert!(queue.try_post(Command::Nop.into()).is_ok(), "others go on");
    between.carry();
    assert_eq!(queue.close(), Ok(0));
}

#[test]
fn nobody_takes_commands_elsewhere() {
    let parts = parts(&[&[0], &[1]]);
    let queue = ControlQueue::open(&parts[0].fabric(), QueueSpec::new(QueueMode::Normal)).unwrap();
    let to = rdma_fabric::control_queue::QueueId::new(Rank::new(1), 0, 0, 0);
    queue.try_post(Posting::new(Command::PutInline { to, bytes: Inline::word(0), at: AT }).tcq(1)).unwrap();
    assert_eq!(queue.poll_tcq().unwrap().unwrap().status, Err(QueueError::NotOpen(to)));
}
