use crate::{Buffer, Edge, Form, Layout, Neighbourhood, Options, Topology};
use rdma_fabric::Group;
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

fn ring(me: usize, n: usize) -> Topology {
    let (left, right) = ((me + n - 1) % n, (me + 1) % n);
    let edge = |member, label| Some(Edge { member, label });
    Topology { sources: [edge(left, 1), edge(right, 0)].into(), destinations: [edge(left, 0), edge(right, 1)].into() }
}

rdma_fabric::program! {
    async fn rings<F>(fabric: F, form: Form, len: usize, strided: bool) -> u64 {
        let group = Group::world(&fabric).await?;
        let (me, n) = (group.me(), group.len());
        let mut hood = Neighbourhood::new(group, ring(me, n)).await?;
        let send = Buffer::<F, u64>::new(&fabric, 2 * len + 64)?;
        let receive = Buffer::<F, u64>::new(&fabric, 4 * len + 64)?;
        let block = |start| Layout::contiguous::<u64>(start, len).unwrap();
        let column = |start| Layout::vector::<u64>(start, len, 1, 2).unwrap();
        let receives = if strided { [column(0), column(1)] } else { [block(0), block(len)] };
        let mut request =
            hood.alltoallw_init(&send, &[block(0), block(len)], &receive, &receives, &Options::form(form)).await?;
        let start = fabric.now();
        for k in 0..20u64 {
            for side in 0..2 {
                send.write(side * len, &vec![k * 1000 + me as u64 * 2 + side as u64; len])?;
            }
            request.start().await?;
            if k % 3 == me as u64 % 3 {
                fabric.compute(std::time::Duration::from_micros(20)).await;
            }
            request.wait().await?;
            let got = receive.to_vec()?;
            let (left, right) = ((me + n - 1) % n, (me + 1) % n);
            let expect = [k * 1000 + left as u64 * 2 + 1, k * 1000 + right as u64 * 2];
            for (at, got) in got.iter().enumerate().take(2 * len) {
                let side = if strided { at % 2 } else { at / len };
                assert_eq!(*got, expect[side], "{form} {k} rank {me} of {n}, element {at}");
            }
        }
        let took = fabric.now() - start;
        if me == 0 { println!("{form} {:?} {n} ranks, {len}: {took:?} ", request.form()); }
        hood.group_mut().barrier().await?;
        Ok(took.as_nanos() as u64)
    }
}

#[test]
fn rings_of_all_forms() {
    for form in [Form::Fast, Form::Queues(2), Form::Mrc, Form::Cpu] {
        for n in [1, 2, 3, 5] {
            for (len, strided) in [(0, false), (1, false), (5, true), (100, true), (1000, false)] {
                Job::new(&Platform::fx100(), n).ranks_per_node(1).run(&rings { form, len, strided }).unwrap();
                Threads::new(n).run(&rings { form, len, strided }).unwrap();
            }
        }
    }
}

rdma_fabric::program! {
    async fn sweep<F>(fabric: F, form: Form, len: usize) -> u64 {
        let group = Group::world(&fabric).await?;
        let (me, n) = (group.me(), group.len());
        let mut hood = Neighbourhood::new(group, ring(me, n)).await?;
        let send = Buffer::<F, u8>::new(&fabric, 2 * len + 64)?;
        let receive = Buffer::<F, u8>::new(&fabric, 4 * len + 64)?;
        let block = |start| Layout::contiguous::<u8>(start, len).unwrap();
        let mut request = hood.alltoallw_init(&send, &[block(0), block(len)], &receive, &[block(0), block(len)], &Options::form(form)).await?;
        hood.group_mut().barrier().await?;
        let start = fabric.now();
        for _ in 0..100 {
            request.start().await?;
            request.wait().await?;
        }
        let took = fabric.now() - start;
        hood.group_mut().barrier().await?;
        Ok(took.as_nanos() as u64 / 100)
    }
}

#[test]
#[ignore]
fn figures() {
    for len in [0, 1024, 4096, 8192, 16384, 32768, 65536] {
        let t = |form| {
            let outcome = Job::new(&Platform::fx100(), 36).ranks_per_node(1).run(&sweep { form, len }).unwrap();
            format!("{:?}", outcome.outs.iter().max())
        };
        println!("{len}: fast {} mrc {} cpu {}", t(Form::Fast), t(Form::Mrc), t(Form::Cpu));
    }
}
