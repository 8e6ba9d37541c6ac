//! Exchanges in which blocks for another node travel together, on nodes of two ranks each.

use super::{
    ExchangeCase, FORMS, Start,
    areas::Cut,
    exchange::{Collective, Exchange, Sizes, Spec, all, each, place, through},
    exchange_cases,
    losses::{Moment, announce_ready, ends, go_on, others_ready},
    pace::{found_complete, is_late},
    shapes::Shape,
};
#[cfg(target_os = "linux")]
use crate::harness::Processes;
use crate::harness::{Bare, Jittered, Threads, Virtual};
use fabric_conformance::{CaseProgram, Loss, ensure_eq};
use onesided::{
    ProgramResult, Rank,
    prdma::{Aggregation, Form, Options},
};
use rdma_fabric::Fabric;
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

macro_rules! every_case {
    ($arguments:tt) => {
        exchange_cases! { $arguments;
            plain {
                shapes [2, 4, 5, 6] self::shapes();
                layouts [4] self::layouts();
                calls [4] self::calls();
                late_members [4, 5] self::late();
                wishes_and_budgets [6] self::budgets();
                without_a_call [4] self::unattended();
            }
            losing {
                a_lost_representative_fast [6] self::lost(Form::Fast);
                a_lost_representative_mrc [6] self::lost(Form::Mrc);
                a_lost_representative_cpu [6] self::lost(Form::Cpu);
            }
        }
    };
}

every_case!([CASES]);
every_case!([threads Bare<Threads<2>>]);
#[cfg(target_os = "linux")]
every_case!([processes Processes<2>]);
every_case!([virt Bare<Virtual<2>>]);
every_case!([virt_jittered Jittered<0, 2>]);
every_case!([#[ignore = "long: weekly"] virt_jittered_more Jittered<2, 8>]);

fn by_node(shape: Shape, form: Form) -> Spec {
    let options = Options { aggregation: Aggregation::by_node(), ..Options::form(form) };
    Spec { options, sizes: Sizes::Mixed(7), ..Spec::new(shape, form) }
}

/// Exchanges all to all; with duplicates, loops and members without edges; in one direction; and
/// with representatives that have no edges themselves.
async fn shapes(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    let tangled = |me: usize| match me % 4 {
        0 => vec![(me + 2) % members, me, (me + 3) % members, (me + 2) % members],
        1 => vec![members - 1, 0, members - 1],
        2 => vec![],
        _ => (0..members).collect(),
    };
    // Only odd members send, two members on.
    let onward = |me: usize| if me % 2 == 1 { vec![(me + 2) % members, (me + 2) % members] } else { vec![] };
    for shape in
        [Shape::complete(members), Shape::by(members, tangled), Shape::by(members, onward), Shape::star(members)]
    {
        for form in FORMS {
            through(fabric, &by_node(shape.clone(), form), 4).await?;
        }
    }
    Ok(())
}

/// Exchanges blocks that are copied and blocks that are not, blocks of one buffer, long blocks that
/// travel alone, and gaps that are bridged or not.
async fn layouts(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    let cuts = [Cut::Contiguous, Cut::Column, Cut::Face, Cut::Drawn(3)];
    for (number, (sends, receives)) in cuts.iter().flat_map(|from| cuts.map(|to| (*from, to))).enumerate() {
        let form = FORMS[number % FORMS.len()];
        for (longest, gap) in [(u64::MAX, 0), (u64::MAX, 64), (60, u64::MAX), (4096, 1024)] {
            let options = Options { aggregation: Aggregation::ByNode { longest, gap }, ..Options::form(form) };
            let spec =
                Spec { sends, receives, options, shared: number % 3 == 0, ..by_node(Shape::complete(members), form) };
            through(fabric, &spec, 2).await?;
        }
    }
    // Each member sends one block to the other node: those of two members travel together, and are
    // put directly from and to their places.
    let opposite = Shape::by(members, |me| vec![(me + members / 2) % members]);
    for form in FORMS {
        through(fabric, &Spec { sizes: Sizes::All(24), ..by_node(opposite.clone(), form) }, 3).await?;
    }
    Ok(())
}

async fn calls(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    for form in FORMS {
        let stepped = async |exchange: &mut Exchange| {
            if !matches!(exchange.data.spec.call, Collective::Allgatherv) {
                let got = (exchange.request.form() == Form::Cpu, exchange.request.aggregation());
                let call = exchange.data.spec.call;
                ensure_eq!(got, (form == Form::Cpu, Aggregation::by_node()), "{call:?}: there are queues enough");
            }
            exchange.steps(3).await
        };
        each(fabric, by_node(Shape::complete(members), form).by_each_call(), stepped).await?;
    }
    Ok(())
}

/// Members are late at start, at wait, and by several iterations; they poll, and drop waits.
async fn late(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let late = async |exchange: &mut Exchange| {
        for k in 0..16 {
            is_late(fabric, k, true, (me, k) == (1, 6)).await;
            exchange.start().await?;
            is_late(fabric, k, false, false).await;
            if k % 3 == 0 {
                while !exchange.request.test().await? {
                    fabric.sleep(Duration::from_micros(2)).await;
                }
            } else if let Poll::Ready(ended) =
                pin!(exchange.request.wait()).poll(&mut Context::from_waker(Waker::noop()))
            {
                ended?;
            }
            exchange.wait().await?;
        }
        Ok(())
    };
    each(fabric, FORMS.map(|form| by_node(Shape::complete(members), form)), late).await
}

/// Blocks travel by node if all members request it and all have enough queues; otherwise as without
/// aggregation. The outcome is the same everywhere, and the same the second time.
async fn budgets(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let mut hood = all(fabric, &Shape::complete(members)).await?;
    let by = Aggregation::by_node();
    for poor in [0, members - 1] {
        let wishes = [
            (Form::Fast, u32::MAX, by, Form::Fast, true),
            // One queue for direct blocks, two for the stages of a representative.
            (Form::Fast, 3, by, Form::Mrc, true),
            (Form::Mrc, u32::MAX, by, Form::Mrc, true),
            (Form::Fast, 1, by, Form::Mrc, false),
            (Form::Fast, 0, by, Form::Cpu, false),
            (Form::Cpu, u32::MAX, by, Form::Cpu, true),
            (Form::Fast, u32::MAX, Aggregation::None, Form::Fast, false),
        ];
        for (wish, budget, aggregation, form, together) in wishes {
            let mine = Options { budget, aggregation, ..Options::form(wish) };
            let options = if me == poor { mine } else { by_node(Shape::complete(members), Form::Fast).options };
            for round in 0..2 {
                let spec = Spec { options, ..by_node(Shape::complete(members), Form::Fast) };
                let mut exchange = Exchange::new(&mut hood, &spec).await?;
                let got = (exchange.request.form(), exchange.request.aggregation() == by);
                ensure_eq!(got, (form, together), "{mine:?} of member {poor}, round {round}");
                exchange.steps(3).await?;
                hood.group_mut().barrier().await?;
            }
        }
    }
    Ok(())
}

/// All members, including representatives, compute after start, and then find the exchange
/// complete, unless there are no queues.
async fn unattended(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    let specs = [Form::Fast, Form::Queues(2), Form::Mrc, Form::Cpu].map(|form| by_node(Shape::complete(members), form));
    found_complete(fabric, &specs, "forwards anything for").await
}

/// The last member of six represents its node to another and has no edges itself. All members that
/// depend on it receive an error in bounded time.
async fn lost(fabric: &Fabric, form: Form, moment: Moment, loss: Loss) -> ProgramResult<()> {
    // Blocks from 2 and 3 to 4 are sent through 5, because 4 represents the node to the first one.
    let shape = Shape::graph(&[vec![4], vec![4], vec![4], vec![4, 4], vec![], vec![]]);
    let (me, members) = place(fabric);
    let last = Rank::new(members as u32 - 1);
    let mut hood = all(fabric, &shape).await?;
    let mut exchange = Exchange::new(&mut hood, &Spec { sizes: Sizes::All(24), ..by_node(shape, form) }).await?;
    ensure_eq!(exchange.request.aggregation(), Aggregation::by_node(), "{form}");
    let survivors = hood.group_mut().split((me != last.index()).then_some(0), me as u64).await?;
    let ready = fabric.alloc_symmetric(8).await?;
    exchange.steps(3).await?;
    let Some(survivors) = survivors else {
        others_ready(fabric, &ready, members as u64 - 1).await?;
        if let Moment::Started = moment {
            exchange.start().await?;
        }
        return loss.happen();
    };
    announce_ready(fabric, &ready, last, moment).await?;
    // A member that only sends may be an iteration ahead, at each step of the way.
    let what = format!("{form}, {moment:?}, member {me}");
    ends(fabric, last, (4, loss != Loss::Kill), &what, async || exchange.steps(1).await).await?;
    go_on(survivors, form).await
}
