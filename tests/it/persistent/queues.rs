//! The return of queues, and their distribution.

use super::{
    FORMS,
    exchange::{Exchange, Spec, all, place},
    shapes::Shape,
};
use fabric_conformance::{ensure, ensure_eq};
use onesided::{
    ControlQueue, ProgramResult,
    control_queue::{QueueMode, QueueSpec},
    prdma::{Buffer, Form, Layout, Neighbourhood, Options, PrdmaError},
};
use rdma_fabric::Fabric;
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

/// Creates as many requests as there are queues, three times; then one at a time, more often than
/// there are queues.
pub(super) async fn again(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    let spec = Spec::new(Shape::ring(members), Form::Fast);
    let mut hood = all(fabric, &spec.shape).await?;
    let free = ControlQueue::limits(fabric).free;
    let mut first = None;
    for round in 0..3 {
        let mut exchanges = vec![Exchange::new(&mut hood, &spec).await?];
        while exchanges.last().is_some_and(|last| last.request.form() != Form::Cpu) {
            exchanges.push(Exchange::new(&mut hood, &spec).await?);
        }
        for exchange in &mut exchanges {
            exchange.start().await?;
        }
        for exchange in &mut exchanges {
            exchange.wait().await?;
        }
        let forms: Vec<Form> = exchanges.iter().map(|exchange| exchange.request.form()).collect();
        ensure!(forms.len() > 4 && forms[0] == Form::Fast, "{forms:?}");
        match &first {
            None => first = Some(forms),
            Some(first) => ensure_eq!(forms, *first, "round {round}"),
        }
        hood.group_mut().barrier().await?;
        drop(exchanges);
        hood.group_mut().barrier().await?;
        ensure_eq!(ControlQueue::limits(fabric).free, free, "all are given back, round {round}");
        hood.group_mut().barrier().await?;
    }
    for number in 0..26 {
        let mut exchange = Exchange::new(&mut hood, &spec).await?;
        ensure_eq!(exchange.request.form(), Form::Fast, "request {number}");
        exchange.steps(1).await?;
        hood.group_mut().barrier().await?;
    }
    Ok(())
}

/// Drops requests while they are active, and drops starts before they complete: requests that are
/// created next are not affected.
pub(super) async fn dropped(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let free = ControlQueue::limits(fabric).free;
    for form in FORMS {
        let spec = Spec::new(Shape::ring(members), form);
        let mut hood = all(fabric, &spec.shape).await?;
        for round in 0..6 {
            let mut exchange = Exchange::new(&mut hood, &spec).await?;
            exchange.steps(2).await?;
            exchange.data.fill()?;
            let start = pin!(exchange.request.start()).poll(&mut Context::from_waker(Waker::noop()));
            match start {
                Poll::Ready(started) => started?,
                Poll::Pending => {
                    let half = Err(PrdmaError::Broken(Box::new(PrdmaError::HalfStarted { iteration: 3 })));
                    ensure_eq!(exchange.request.wait().await, half, "{form}: a start was dropped half-way");
                    ensure_eq!(exchange.request.start().await, half, "{form}: a start was dropped half-way");
                }
            }
            hood.group_mut().barrier().await?;
            if round % members == me {
                drop(exchange);
                hood.group_mut().barrier().await?;
            } else {
                // The others drop theirs first.
                hood.group_mut().barrier().await?;
                drop(exchange);
            }
            let mut exchange = Exchange::new(&mut hood, &spec).await?;
            exchange.steps(2).await?;
            hood.group_mut().barrier().await?;
        }
        hood.group_mut().barrier().await?;
    }
    let mut hood = all(fabric, &Shape::ring(members)).await?;
    ensure_eq!(ControlQueue::limits(fabric).free, free, "all are given back");
    Ok(hood.group_mut().barrier().await?)
}

/// Creates an exchange and returns its form, which must be the same everywhere.
async fn agreed(hood: &mut Neighbourhood, spec: &Spec) -> ProgramResult<Form> {
    let mut exchange = Exchange::new(hood, spec).await?;
    let form = exchange.request.form();
    // Distinct for distinct forms with so few neighbours.
    let all = hood.group_mut().allgather(u64::from(form.queues(100)) << 1 | u64::from(form == Form::Fast)).await?;
    ensure!(all.iter().all(|other| *other == all[0]), "members disagree about the form: {all:?}, here {form}");
    exchange.steps(3).await?;
    hood.group_mut().barrier().await?;
    Ok(form)
}

/// The smallest budget, and the most economical request, determine the form for all.
pub(super) async fn budgets(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let shape = Shape::complete(members);
    let mut hood = all(fabric, &shape).await?;
    let forms = [(0, Form::Cpu), (1, Form::Mrc), (2, Form::Queues(2)), (3, Form::Fast), (u32::MAX, Form::Fast)];
    for poor in 0..members {
        for (budget, form) in forms {
            let budget = if me == poor { budget } else { u32::MAX };
            let options = Options { budget, ..Options::default() };
            let got = agreed(&mut hood, &Spec { options, ..Spec::new(shape.clone(), Form::Fast) }).await?;
            ensure_eq!(got, form, "the budget of member {poor}");
        }
        for wish in [Form::Cpu, Form::Mrc, Form::Queues(2), Form::Fast] {
            let mine = if me == poor { wish } else { Form::Fast };
            let got = agreed(&mut hood, &Spec::new(shape.clone(), mine)).await?;
            ensure_eq!(got, wish, "the wish of member {poor}");
        }
    }
    // Both at the same time.
    let options =
        Options { budget: if me == 0 { 2 } else { 9 }, ..Options::form([Form::Fast, Form::Queues(3)][me % 2]) };
    let got = agreed(&mut hood, &Spec { options, ..Spec::new(shape.clone(), Form::Fast) }).await?;
    ensure_eq!(got, Form::Queues(2), "a budget of 2 here, a wish for 3 there");
    Ok(())
}

/// When queues of a node are already taken, all members use the most expensive form for which all
/// nodes still have enough queues, and the same one again.
pub(super) async fn exhausted(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let spec = Spec::new(Shape::ring(members), Form::Fast);
    let mut hood = all(fabric, &spec.shape).await?;
    let mut on_my_node = 0;
    for rank in 0..members {
        let node = fabric.node(hood.group().rank(rank)?)?;
        on_my_node += u64::from(node == fabric.node(fabric.rank())?);
    }
    for left in [0, 1, 2, 3, 4, 5, 6, 7, 0, 20] {
        let mut taken = Vec::new();
        if me == 0 {
            while ControlQueue::limits(fabric).free > left {
                taken.push(ControlQueue::open(fabric, QueueSpec::new(QueueMode::Session))?);
            }
        }
        hood.group_mut().barrier().await?;
        let free = u64::from(ControlQueue::limits(fabric).free);
        // Members need 2 queues each, 1, or none.
        let affordable = (0..=2u64).rev().find(|each| each * on_my_node <= free).unwrap_or(0);
        let fewest = hood.group_mut().allgather(affordable).await?.into_iter().min();
        let want = [Form::Cpu, Form::Mrc, Form::Fast][fewest.unwrap_or(0) as usize];
        for round in 0..3 {
            let got = agreed(&mut hood, &spec).await?;
            ensure_eq!(got, want, "{left} queues are left at the node of member 0, round {round}");
        }
        drop(taken);
        hood.group_mut().barrier().await?;
    }
    Ok(())
}

/// The blocks of one member take more commands than a ring has slots: the CPUs exchange them
/// instead, and every member can query the reason.
pub(super) async fn deep(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let limit = ControlQueue::limits(fabric).most_depth as usize;
    let mut hood = all(fabric, &Shape::ring(members)).await?;
    for bytes in [limit / 512, limit] {
        let (send, receive) = (Buffer::<u8>::new(fabric, 2 * bytes)?, Buffer::<u8>::new(fabric, 2 * bytes)?);
        // Member 0 sends every second byte to one neighbour and the rest to the other.
        let half = |slot: usize| match me {
            0 => Layout::vector::<u8>(slot, bytes, 1, 2),
            _ => Layout::contiguous::<u8>(slot * bytes, bytes),
        };
        let sends = [half(0)?, half(1)?];
        let receives = [Layout::contiguous::<u8>(0, bytes)?, Layout::contiguous::<u8>(bytes, bytes)?];
        let options = Options { direct_blocks: u32::MAX, ..Options::form(Form::Fast) };
        let request = hood.alltoallw_init(&send, &sends, &receive, &receives, &options).await?;
        if bytes < limit {
            ensure_eq!((request.form(), request.obstacle()), (Form::Fast, None), "{bytes} commands of {limit}");
        } else {
            ensure_eq!(request.form(), Form::Cpu, "{bytes} commands and more of {limit}");
            let told = match request.obstacle() {
                Some(PrdmaError::Limit { value, limit: told, .. }) => *told == limit as u64 && value > told && me == 0,
                told => told == Some(&PrdmaError::ElsewhereFailed) && me > 0,
            };
            ensure!(told, "member {me} is told {:?}", request.obstacle());
        }
        hood.group_mut().barrier().await?;
        drop(request);
        // Also in partitions.
        let parts = hood.partitioned_init(&send, &sends, &receive, &receives, 2, &options).await?;
        let told = match parts.obstacle() {
            None => bytes < limit,
            Some(PrdmaError::Limit { limit: told, .. }) => bytes == limit && *told == limit as u64 && me == 0,
            Some(told) => bytes == limit && *told == PrdmaError::ElsewhereFailed && me > 0,
        };
        ensure!(told, "member {me} is told {:?} of partitions", parts.obstacle());
        ensure_eq!(parts.form(), if bytes < limit { Form::Fast } else { Form::Cpu }, "{bytes} commands in partitions");
        hood.group_mut().barrier().await?;
    }
    Ok(())
}
