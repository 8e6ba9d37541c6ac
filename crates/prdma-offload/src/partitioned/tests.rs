use crate::{Buffer, Edge, Form, Layout, Neighbourhood, Options, Partitioned, PrdmaError, Side, Topology};
use core::time::Duration;
use rdma_fabric::{Group, SessionFabric, join};
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

const FORMS: [Form; 4] = [Form::Fast, Form::Queues(2), Form::Mrc, Form::Cpu];

/// All orders of three.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

fn edge(member: usize, label: u32) -> Option<Edge> {
    Some(Edge { member, label })
}

/// Two blocks each way, and an edge to nobody.
fn ring(me: usize, n: usize) -> Topology {
    let (left, right) = ((me + n - 1) % n, (me + 1) % n);
    Topology::of([edge(left, 1), None, edge(right, 0)].into(), [edge(left, 0), None, edge(right, 1)].into())
}

async fn neighbours<F: SessionFabric>(fabric: &F) -> crate::Result<Neighbourhood<F>> {
    let group = Group::world(fabric).await?;
    let topology = ring(group.me(), group.len());
    Neighbourhood::new(group, topology).await
}

/// Three blocks of `len` elements, contiguous or columns.
fn layouts(columns: bool, len: usize) -> Vec<Layout> {
    let block = |at: usize| match columns {
        true => Layout::vector::<u64>(at, len, 1, 3).unwrap(),
        false => Layout::contiguous::<u64>(at * len, len).unwrap(),
    };
    (0..3).map(block).collect()
}

/// Write partition `partition` of block `slot` of `data`, of three of `len` elements each.
fn write<F: SessionFabric>(
    buffer: &Buffer<F, u64>,
    columns: bool,
    len: usize,
    slot: usize,
    partition: usize,
    data: &[u64],
) -> crate::Result<()> {
    let each = len / 3;
    for at in partition * each..(partition + 1) * each {
        let place = if columns { 3 * at + slot } else { slot * len + at };
        buffer.write(place, &data[place..=place])?;
    }
    Ok(())
}

rdma_fabric::program! {
    /// Plain and partitioned exchanges of the same data in turn, marked in all orders.
    async fn alike<F>(fabric: F, form: Form, len: usize, columns: (bool, bool), times: u64) -> () {
        let mut hood = neighbours(&fabric).await?;
        let (me, n) = (hood.group().me() as u64, hood.group().len() as u64);
        let (sends, receives) = (layouts(columns.0, len), layouts(columns.1, len));
        let [send, plain, one, other] = [(); 4].map(|()| Buffer::<F, u64>::new(&fabric, 3 * len + 1));
        let (send, plain, one, other) = (send?, plain?, one?, other?);
        let options = Options::form(form);
        let mut whole = hood.alltoallw_init(&plain, &sends, &one, &receives, &options).await?;
        let mut parts = hood.partitioned_init(&send, &sends, &other, &receives, 3, &options).await?;
        assert_eq!(parts.partitions(), 3);
        for k in 0..times {
            let data: Vec<u64> = (0..=3 * len as u64).map(|at| k << 40 | me << 32 | at).collect();
            plain.write(0, &data)?;
            if k % 3 == me % 3 {
                fabric.compute(Duration::from_micros(30)).await;
            }
            whole.start().await?;
            parts.start().await?;
            let order = ORDERS[(k as usize * 5 + me as usize) % 6];
            for (step, partition) in order.into_iter().enumerate() {
                // What is not marked yet may be written.
                for slot in 0..3 {
                    write(&send, columns.0, len, slot, partition, &data)?;
                }
                if (k + step as u64) % 4 == me % 4 {
                    fabric.compute(Duration::from_micros(10)).await;
                }
                if k % 2 == 0 {
                    for slot in [2, 0, 1] {
                        parts.ready(slot, partition).await?;
                    }
                } else {
                    // Several tasks at once.
                    let marked = join::join_all((0..3).map(|slot| parts.ready(slot, partition))).await;
                    marked.into_iter().collect::<crate::Result<()>>()?;
                }
            }
            if k % 3 == 0 {
                parts.test().await?;
            }
            parts.wait().await?;
            whole.wait().await?;
            assert_eq!(one.to_vec()?, other.to_vec()?, "{form}: exchange {k} of {me}");
            let from = (n + me - 1) % n;
            assert_eq!(one.to_vec()?[0] >> 32, k << 8 | from, "what comes from the left is of this exchange");
        }
        hood.group_mut().barrier().await?;
        Ok(())
    }
}

#[test]
fn partitions_in_any_order_bring_what_whole_blocks_do() {
    for form in FORMS {
        for n in [1, 2, 5] {
            for (len, columns) in [(3, (false, false)), (6, (false, true)), (12, (true, true))] {
                Threads::new(n).run(&alike { form, len, columns, times: 10 }).unwrap();
                let program = alike { form, len, columns, times: 100 };
                Job::new(&Platform::fx100(), n).ranks_per_node(1).run(&program).unwrap();
                let jitter = Duration::from_micros(20);
                Job::new(&Platform::fx100(), n).jitter(jitter).shuffle_ties(true).run(&program).unwrap();
            }
        }
    }
}

/// Blocks of 3 elements on both sides of a ring.
async fn threes<F: SessionFabric>(
    hood: &mut Neighbourhood<F>,
    form: Form,
) -> crate::Result<(Buffer<F, u64>, Buffer<F, u64>, Partitioned<F>)> {
    let fabric = hood.group().fabric().clone();
    let (send, receive) = (Buffer::<F, u64>::new(&fabric, 9)?, Buffer::<F, u64>::new(&fabric, 9)?);
    let blocks = layouts(false, 3);
    let parts = hood.partitioned_init(&send, &blocks, &receive, &blocks, 3, &Options::form(form)).await?;
    Ok((send, receive, parts))
}

rdma_fabric::program! {
    /// The second of three partitions is marked, and read at the other side while the others are not marked.
    async fn early<F>(fabric: F, form: Form) -> Form {
        let mut hood = neighbours(&fabric).await?;
        let (me, n) = (hood.group().me() as u64, hood.group().len() as u64);
        let (send, receive, mut parts) = threes(&mut hood, form).await?;
        let (left, right) = ((n + me - 1) % n, (me + 1) % n);
        for k in 1..=20 {
            parts.start().await?;
            for slot in [0, 2] {
                send.write(3 * slot + 1, &[k << 8 | me])?;
                parts.ready(slot, 1).await?;
                assert!(matches!(send.write(3 * slot + 1, &[0]), Err(PrdmaError::InUse { .. })), "it is marked");
            }
            for (slot, from) in [(0, left), (2, right)] {
                while !parts.arrived(slot, 1).await? {
                    fabric.compute(Duration::from_micros(1)).await;
                }
                let mut got = [0];
                receive.read(3 * slot + 1, &mut got)?;
                assert_eq!(got, [k << 8 | from]);
                // Nobody has marked these: the neighbours wait here, too.
                for partition in [0, 2] {
                    assert!(!parts.arrived(slot, partition).await?, "{form}: {partition} of {slot} in {k}");
                    let there = receive.read(3 * slot + partition, &mut got);
                    assert!(matches!(there, Err(PrdmaError::InUse { .. })), "{there:?}");
                }
            }
            assert!(parts.arrived(1, 0).await?, "nobody is there");
            // Until all have seen it.
            hood.group_mut().barrier().await?;
            for slot in 0..3 {
                send.write(3 * slot, &[k << 8 | me])?;
                send.write(3 * slot + 2, &[k << 8 | me])?;
                if slot == 1 {
                    parts.ready_range(1, 0..3).await?;
                } else {
                    parts.ready_range(slot, 2..3).await?;
                    parts.ready_range(slot, 0..1).await?;
                }
            }
            parts.wait().await?;
            let got = receive.to_vec()?;
            assert_eq!((&got[..3], &got[6..]), (&[k << 8 | left; 3][..], &[k << 8 | right; 3][..]));
        }
        hood.group_mut().barrier().await?;
        Ok(parts.form())
    }
}

#[test]
fn a_partition_is_read_before_the_others_are_marked() {
    for form in FORMS {
        for n in [1, 2, 4] {
            let expected = if form == Form::Queues(2) { Form::Fast } else { form };
            let formed = Threads::new(n).run(&early { form }).unwrap();
            assert!(formed.iter().all(|formed| *formed == expected), "{formed:?}");
            let outcome =
                Job::new(&Platform::fx100(), n).jitter(Duration::from_micros(5)).run(&early { form }).unwrap();
            assert!(outcome.outs.iter().all(|formed| *formed == expected), "{:?}", outcome.outs);
        }
    }
}

rdma_fabric::program! {
    /// How long the wait takes after all have computed, with one partition marked before.
    async fn offloaded<F>(fabric: F, form: Form) -> u64 {
        let mut hood = neighbours(&fabric).await?;
        let (_, receive, mut parts) = threes(&mut hood, form).await?;
        parts.start().await?;
        for slot in 0..3 {
            parts.ready(slot, 2).await?;
        }
        fabric.compute(Duration::from_millis(1)).await;
        // It came while all computed; only the others were not marked.
        let came = parts.arrived(0, 2).await? && parts.arrived(2, 2).await?;
        if came {
            receive.read(2, &mut [0])?;
        }
        hood.group_mut().barrier().await?;
        for slot in 0..3 {
            parts.ready_range(slot, 0..2).await?;
        }
        parts.wait().await?;
        hood.group_mut().barrier().await?;
        Ok(u64::from(came))
    }
}

#[test]
fn queues_send_partitions_while_all_compute() {
    for form in [Form::Fast, Form::Mrc] {
        let outcome = Job::new(&Platform::fx100(), 4).ranks_per_node(1).run(&offloaded { form }).unwrap();
        assert_eq!(outcome.outs.iter().sum::<u64>(), 4, "{form}");
    }
}

rdma_fabric::program! {
    async fn misuse<F>(fabric: F, form: Form) -> () {
        let mut hood = neighbours(&fabric).await?;
        let me = hood.group().me();
        let (_, _, mut parts) = threes(&mut hood, form).await?;
        assert_eq!(parts.ready(0, 0).await, Err(PrdmaError::Inactive));
        assert_eq!(parts.arrived(0, 0).await, Ok(true));
        assert_eq!(parts.wait().await, Ok(()));
        for iteration in 1..=3 {
            parts.start().await?;
            assert_eq!(parts.start().await, Err(PrdmaError::Active { iteration }));
            let side = Side::Destination;
            let none = |slot, first, end| Err(PrdmaError::NoPartition { side, slot, first, end, slots: 3, partitions: 3 });
            assert_eq!(parts.ready(0, 3).await, none(0, 3, 4));
            assert_eq!(parts.ready(3, 0).await, none(3, 0, 1));
            assert_eq!(parts.ready_range(2, 1..4).await, none(2, 1, 4));
            let arrived = parts.arrived(0, 3).await;
            assert!(matches!(arrived, Err(PrdmaError::NoPartition { side: Side::Source, .. })), "{arrived:?}");
            parts.ready(0, 1).await?;
            let twice = Err(PrdmaError::ReadyTwice { slot: 0, partition: 1, iteration });
            assert_eq!(parts.ready(0, 1).await, twice);
            // None of the range is marked then.
            assert_eq!(parts.ready_range(0, 0..3).await, twice);
            let idle = |slot, partition| PrdmaError::NotReady { slot, partition, iteration };
            assert_eq!(parts.wait().await, Err(idle(0, 0)));
            parts.ready(0, 0).await?;
            parts.ready_range(2, 0..3).await?;
            assert_eq!(parts.test().await, Err(idle(0, 2)));
            parts.ready(0, 2).await?;
            // Those of the slot without a neighbour need not be.
            parts.wait().await?;
            assert!(!parts.is_active() && parts.iterations() == iteration);
        }
        let buffer = Buffer::<F, u64>::new(&fabric, 36)?;
        let (send, receive) = (layouts(false, 4), Layout::contiguous::<u64>(20, 4).unwrap());
        let receives = [receive, Layout::nothing(), Layout::contiguous::<u64>(24, 4).unwrap()];
        let options = Options::form(form);
        let told = hood.partitioned_init(&buffer, &send, &buffer, &receives, 3, &options).await.map(drop);
        assert_eq!(told, Err(PrdmaError::Uneven { side: Side::Destination, slot: 0, partitions: 3, of: 4 }));
        let told = hood.partitioned_init(&buffer, &send, &buffer, &receives, 0, &options).await.map(drop);
        assert!(matches!(told, Err(PrdmaError::Uneven { partitions: 0, .. })), "{told:?}");
        // One member sends columns that don't go evenly.
        let column = |at| Layout::vector::<u64>(at, 2, 2, 4).unwrap();
        let columns = [column(0), Layout::nothing(), column(2)];
        let mine = if me == 0 { &columns[..] } else { &send[..] };
        let told = hood.partitioned_init(&buffer, mine, &buffer, &receives, 4, &options).await.map(drop);
        assert_eq!(told, Err(match me {
            0 => PrdmaError::Uneven { side: Side::Destination, slot: 0, partitions: 4, of: 2 },
            _ => PrdmaError::ElsewhereFailed,
        }));
        let many = if me == 0 { 2 } else { 4 };
        let told = hood.partitioned_init(&buffer, &send, &buffer, &receives, many, &options).await.map(drop);
        assert_eq!(told, Err(PrdmaError::Disagreement { what: "numbers of partitions", least: 2, most: 4 }));
        // Sizes are told of whole blocks.
        let long = [Layout::contiguous::<u64>(0, 8).unwrap(), Layout::nothing(), Layout::contiguous::<u64>(8, 4).unwrap()];
        let mine = if me == 1 { &long[..] } else { &send[..] };
        let told = hood.partitioned_init(&buffer, mine, &buffer, &receives, 4, &options).await.map(drop);
        let size = |side, slot, member, mine, theirs| PrdmaError::Size { side, slot, member, mine, theirs };
        assert_eq!(told, Err(match me {
            0 => size(Side::Source, 2, 1, 32, 64),
            1 => size(Side::Destination, 0, 0, 64, 32),
            _ => PrdmaError::ElsewhereFailed,
        }));
        hood.group_mut().barrier().await?;
        Ok(())
    }
}

#[test]
fn misuse_is_told_and_changes_nothing() {
    for form in [Form::Fast, Form::Mrc, Form::Cpu] {
        Threads::new(3).run(&misuse { form }).unwrap();
        Job::new(&Platform::fx100(), 3).run(&misuse { form }).unwrap();
    }
}

rdma_fabric::program! {
    /// More commands than a READY can release by itself.
    async fn many<F>(fabric: F, form: Form, partitions: usize, runs: usize, times: u64) -> Form {
        let mut hood = neighbours(&fabric).await?;
        let me = hood.group().me() as u64;
        let (sends, receives) = (layouts(true, runs * partitions), layouts(false, runs * partitions));
        let send = Buffer::<F, u64>::new(&fabric, 3 * runs * partitions)?;
        let receive = Buffer::<F, u64>::new(&fabric, 3 * runs * partitions)?;
        let options = Options::form(form);
        let mut parts = hood.partitioned_init(&send, &sends, &receive, &receives, partitions, &options).await?;
        for k in 0..times {
            send.write(0, &vec![k << 8 | me; 3 * runs * partitions])?;
            parts.start().await?;
            for partition in (0..partitions).rev() {
                for slot in [0, 2] {
                    parts.ready(slot, partition).await?;
                }
            }
            parts.wait().await?;
            let n = hood.group().len() as u64;
            let (left, right) = ((n + me - 1) % n, (me + 1) % n);
            let got = receive.to_vec()?;
            assert!(got[..runs * partitions].iter().all(|got| *got == k << 8 | left), "{got:?}");
            assert!(got[2 * runs * partitions..].iter().all(|got| *got == k << 8 | right), "{got:?}");
        }
        hood.group_mut().barrier().await?;
        Ok(parts.form())
    }
}

#[test]
fn many_partitions_use_a_chain_and_too_many_the_cpu() {
    for form in [Form::Fast, Form::Mrc] {
        let program = many { form, partitions: 20, runs: 3, times: 10 };
        assert_eq!(Threads::new(2).run(&program).unwrap(), [form; 2]);
        assert_eq!(Job::new(&Platform::fx100(), 3).run(&program).unwrap().outs, [form; 3]);
    }
    // Twice 60 times 301 slots are more than half a queue.
    let program = many { form: Form::Mrc, partitions: 60, runs: 300, times: 2 };
    assert_eq!(Job::new(&Platform::fx100(), 1).run(&program).unwrap().outs, [Form::Cpu]);
}

/// Poll until it is over, on whatever thread.
fn drive<T>(future: impl core::future::Future<Output = T>) -> T {
    let mut future = core::pin::pin!(future);
    let mut cx = core::task::Context::from_waker(core::task::Waker::noop());
    loop {
        match future.as_mut().poll(&mut cx) {
            core::task::Poll::Ready(done) => return done,
            core::task::Poll::Pending => std::thread::yield_now(),
        }
    }
}

#[test]
fn threads_of_a_rank_mark_and_look() {
    fn shared<T: Send + Sync>(_: &T) {}
    for form in [Form::Fast, Form::Mrc, Form::Cpu] {
        let run = Threads::new(2).run_with(|fabric| {
            drive(async {
                let mut hood = neighbours(&fabric).await?;
                let me = hood.group().me() as u64;
                let (send, receive, mut parts) = threes(&mut hood, form).await?;
                shared(&parts);
                for k in 1..=20 {
                    parts.start().await?;
                    std::thread::scope(|scope| {
                        for partition in 0..3 {
                            let (parts, send, receive) = (&parts, &send, &receive);
                            scope.spawn(move || {
                                for slot in [0, 2] {
                                    send.write(3 * slot + partition, &[k << 8 | me]).unwrap();
                                    drive(parts.ready(slot, partition)).unwrap();
                                }
                                for slot in [0, 2] {
                                    while !drive(parts.arrived(slot, partition)).unwrap() {
                                        std::thread::yield_now();
                                    }
                                    let mut got = [0];
                                    receive.read(3 * slot + partition, &mut got).unwrap();
                                    assert_eq!(got, [k << 8 | (1 - me)], "{form}: {partition} of {slot}");
                                }
                            });
                        }
                    });
                    parts.wait().await?;
                }
                hood.group_mut().barrier().await?;
                Ok(())
            })
        });
        run.unwrap();
    }
}
