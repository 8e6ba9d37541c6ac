//! Exchanges in which blocks for another node travel together.

use super::{
    FORMS, Moment,
    losses::{ends, farewell, go_on, left_alone},
    progress::found_complete,
};
use crate::{
    areas::Cut,
    exchange::{Call, Sizes, Spec, Stage, all, busy, place, through},
    shapes::Shape,
    suite::{provider::Loss, verdict::ensure_eq},
};
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

/// Which case.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeCase {
    Shapes,
    Layouts,
    Calls,
    Late,
    Budgets,
    Unattended,
    Lost(Form, Moment, Loss),
}

pub(super) async fn run(fabric: &Fabric, case: NodeCase) -> ProgramResult<()> {
    match case {
        NodeCase::Shapes => shapes(fabric).await,
        NodeCase::Layouts => layouts(fabric).await,
        NodeCase::Calls => calls(fabric).await,
        NodeCase::Late => late(fabric).await,
        NodeCase::Budgets => budgets(fabric).await,
        NodeCase::Unattended => unattended(fabric).await,
        NodeCase::Lost(form, moment, loss) => lost(fabric, form, moment, loss).await,
    }
}

fn everybody(members: usize) -> Shape {
    let others = |me: usize| (0..members).filter(|other| *other != me).collect();
    Shape::graph(&(0..members).map(others).collect::<Vec<_>>())
}

fn by_node(shape: Shape, form: Form) -> Spec {
    let options = Options { aggregation: Aggregation::by_node(), ..Options::form(form) };
    Spec { options, sizes: Sizes::Mixed(7), ..Spec::new(shape, form) }
}

/// All to all; duplicates, loops, members without edges; one way; representatives without edges of their own.
async fn shapes(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    let graph = |to: &dyn Fn(usize) -> Vec<usize>| Shape::graph(&(0..members).map(to).collect::<Vec<_>>());
    let tangled = |me: usize| match me % 4 {
        0 => vec![(me + 2) % members, me, (me + 3) % members, (me + 2) % members],
        1 => vec![members - 1, 0, members - 1],
        2 => vec![],
        _ => (0..members).collect(),
    };
    // What goes on is for the last of each node.
    let onward = |me: usize| if me % 2 == 1 { vec![(me + 2) % members, (me + 2) % members] } else { vec![] };
    for shape in [everybody(members), graph(&tangled), graph(&onward), Shape::star(members)] {
        for form in FORMS {
            through(fabric, &by_node(shape.clone(), form), 4).await?;
        }
    }
    Ok(())
}

/// Blocks that are copied and blocks that are not; of one buffer; long ones that go alone, and gaps that are bridged or not.
async fn layouts(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    let cuts = [Cut::Contiguous, Cut::Column, Cut::Face, Cut::Drawn(3)];
    for (number, (sends, receives)) in cuts.iter().flat_map(|from| cuts.map(|to| (*from, to))).enumerate() {
        let form = FORMS[number % FORMS.len()];
        for (longest, gap) in [(u64::MAX, 0), (u64::MAX, 64), (60, u64::MAX), (4096, 1024)] {
            let options = Options { aggregation: Aggregation::ByNode { longest, gap }, ..Options::form(form) };
            let spec = Spec { sends, receives, options, shared: number % 3 == 0, ..by_node(everybody(members), form) };
            through(fabric, &spec, 2).await?;
        }
    }
    // One block of each member to the other node: those of two go together, and are put from and to where they are.
    let opposite = Shape::graph(&(0..members).map(|me| vec![(me + members / 2) % members]).collect::<Vec<_>>());
    for form in FORMS {
        through(fabric, &Spec { sizes: Sizes::All(24), ..by_node(opposite.clone(), form) }, 3).await?;
    }
    Ok(())
}

async fn calls(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    for form in FORMS {
        let spec = |call, sizes| Spec { call, sizes, ..by_node(everybody(members), form) };
        let specs = [
            spec(Call::Alltoallw, Sizes::Mixed(5)),
            spec(Call::Alltoallv, Sizes::Mixed(5)),
            spec(Call::Alltoall, Sizes::All(37)),
            spec(Call::Allgather, Sizes::All(37)),
            spec(Call::Allgatherv, Sizes::Mixed(6)),
        ];
        for spec in &specs {
            let mut hood = all(fabric, &spec.shape).await?;
            let mut stage = Stage::new(&mut hood, spec).await?;
            if !matches!(spec.call, Call::Allgatherv) {
                let got = (stage.request.form() == Form::Cpu, stage.request.aggregation());
                ensure_eq!(
                    got,
                    (form == Form::Cpu, Aggregation::by_node()),
                    "{:?}: there are queues enough",
                    spec.call
                );
            }
            stage.steps(3).await?;
            hood.group_mut().barrier().await?;
        }
    }
    Ok(())
}

/// Members are late at start, at wait, by several iterations; they look, and drop waits.
async fn late(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    for form in FORMS {
        let mut hood = all(fabric, &everybody(members)).await?;
        let mut stage = Stage::new(&mut hood, &by_node(everybody(members), form)).await?;
        for k in 0..16 {
            let turn = k % members == me;
            if turn && k % 2 == 0 {
                busy(fabric, Duration::from_micros(30)).await;
            }
            if me == 1 && k == 6 {
                busy(fabric, Duration::from_micros(800)).await;
            }
            stage.start().await?;
            if turn && k % 2 == 1 {
                busy(fabric, Duration::from_micros(30)).await;
            }
            if k % 3 == 0 {
                while !stage.request.test().await? {
                    fabric.sleep(Duration::from_micros(2)).await;
                }
            } else if let Poll::Ready(ended) = pin!(stage.request.wait()).poll(&mut Context::from_waker(Waker::noop()))
            {
                ended?;
            }
            stage.wait().await?;
        }
        hood.group_mut().barrier().await?;
    }
    Ok(())
}

/// By node if all wish that and all can afford the queues; else as without it. The same everywhere, and again.
async fn budgets(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let mut hood = all(fabric, &everybody(members)).await?;
    let by = Aggregation::by_node();
    for poor in [0, members - 1] {
        let wishes = [
            (Form::Fast, u32::MAX, by, Form::Fast, true),
            // One for what goes directly, two for the stages of a representative.
            (Form::Fast, 3, by, Form::Mrc, true),
            (Form::Mrc, u32::MAX, by, Form::Mrc, true),
            (Form::Fast, 1, by, Form::Mrc, false),
            (Form::Fast, 0, by, Form::Cpu, false),
            (Form::Cpu, u32::MAX, by, Form::Cpu, true),
            (Form::Fast, u32::MAX, Aggregation::None, Form::Fast, false),
        ];
        for (wish, budget, aggregation, form, together) in wishes {
            let mine = Options { budget, aggregation, ..Options::form(wish) };
            let options = if me == poor { mine } else { by_node(everybody(members), Form::Fast).options };
            for round in 0..2 {
                let spec = Spec { options, ..by_node(everybody(members), Form::Fast) };
                let mut stage = Stage::new(&mut hood, &spec).await?;
                let got = (stage.request.form(), stage.request.aggregation() == by);
                ensure_eq!(got, (form, together), "{mine:?} of member {poor}, round {round}");
                stage.steps(3).await?;
                hood.group_mut().barrier().await?;
            }
        }
    }
    Ok(())
}

/// All compute after start, representatives too, and find the exchange complete; not so without queues.
async fn unattended(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    let specs = [Form::Fast, Form::Queues(2), Form::Mrc, Form::Cpu].map(|form| by_node(everybody(members), form));
    found_complete(fabric, &specs, "forwards anything for").await
}

/// The last member of six represents its node to another and has no edge of its own. All that depend on it hear of its loss in bounded time.
async fn lost(fabric: &Fabric, form: Form, moment: Moment, loss: Loss) -> ProgramResult<()> {
    // What 2 and 3 send to 4 goes through 5, for 4 represents the node to the first one.
    let shape = Shape::graph(&[vec![4], vec![4], vec![4], vec![4, 4], vec![], vec![]]);
    let (me, members) = place(fabric);
    let last = Rank::new(members as u32 - 1);
    let mut hood = all(fabric, &shape).await?;
    let mut stage = Stage::new(&mut hood, &Spec { sizes: Sizes::All(24), ..by_node(shape, form) }).await?;
    ensure_eq!(stage.request.aggregation(), Aggregation::by_node(), "{form}");
    let survivors = hood.group_mut().split((me != last.index()).then_some(0), me as u64).await?;
    let ready = fabric.alloc_symmetric(8).await?;
    stage.steps(3).await?;
    let Some(survivors) = survivors else {
        left_alone(fabric, &ready, members as u64 - 1).await?;
        if let Moment::Started = moment {
            stage.start().await?;
        }
        return loss.happen();
    };
    farewell(fabric, &ready, last, moment).await?;
    // Who only sends may be an iteration ahead, at each step of the way.
    let what = format!("{form}, {moment:?}, member {me}");
    ends(fabric, last, (4, loss != Loss::Kill), &what, async || stage.steps(1).await).await?;
    go_on(survivors, form).await
}
