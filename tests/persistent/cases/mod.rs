//! The cases. They know no provider.

mod blocks;
mod by_node;
mod losses;
mod pace;
mod parts;
mod points;
mod progress;
mod queues;
mod reductions;
mod topologies;
mod wrong;

use crate::suite::provider::Loss;
use onesided::{ProgramResult, prdma::Form};
use std::pin::Pin;

pub(crate) use by_node::NodeCase;
pub(crate) use losses::Moment;
pub(crate) use parts::Call;
use parts::{Call::*, Losing};
use rdma_fabric::Fabric;

/// Which case.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Case {
    Rings,
    Torus([usize; 2]),
    Surrounded,
    Borders,
    Opposite,
    Tangled,
    Star,
    Layouts,
    Elements,
    OneBuffer,
    Calls,
    FormsAgree,
    Late,
    Polled,
    Thousand,
    Orders,
    Many,
    Again,
    Dropped,
    Budgets,
    Exhausted,
    Deep,
    WrongBlocks,
    WrongEdges,
    WrongOrder,
    Points,
    EarlyAndLate,
    WrongPoints,
    Unattended,
    ByNode(NodeCase),
    Allreduces,
    ScarceReductions,
    LostReduction(Form, Moment, Loss),
    Lost(Form, Moment, Loss),
    PartsLost(Form, Moment, Loss),
    PartsAsked(Form, Moment, Loss),
    /// The loss is known before this call.
    PartsKnown((Form, Call), Moment, Loss),
}

/// All forms, with as many queues between as make a difference.
pub(crate) const FORMS: [Form; 5] = [Form::Fast, Form::Queues(3), Form::Queues(2), Form::Mrc, Form::Cpu];

pub(crate) async fn persistent(fabric: Fabric, case: Case) -> ProgramResult<()> {
    run(&fabric, case).await
}

/// What a case ends with. In a box, for the sum of all cases' futures is no future that a thread's stack should have.
type Ending<'a> = Pin<Box<dyn Future<Output = ProgramResult<()>> + 'a>>;

fn run(fabric: &Fabric, case: Case) -> Ending<'_> {
    match case {
        Case::Rings => Box::pin(topologies::rings(fabric)),
        Case::Torus(dims) => Box::pin(topologies::torus(fabric, dims)),
        Case::Surrounded => Box::pin(topologies::surrounded(fabric)),
        Case::Borders => Box::pin(topologies::borders(fabric)),
        Case::Opposite => Box::pin(topologies::opposite(fabric)),
        Case::Tangled => Box::pin(topologies::tangled(fabric)),
        Case::Star => Box::pin(topologies::star(fabric)),
        Case::Layouts => Box::pin(blocks::layouts(fabric)),
        Case::Elements => Box::pin(blocks::elements(fabric)),
        Case::OneBuffer => Box::pin(blocks::one_buffer(fabric)),
        Case::Calls => Box::pin(blocks::calls(fabric)),
        Case::FormsAgree => Box::pin(blocks::forms_agree(fabric)),
        Case::Late => Box::pin(pace::late(fabric)),
        Case::Polled => Box::pin(pace::polled(fabric)),
        Case::Thousand => Box::pin(pace::thousand(fabric)),
        Case::Orders => Box::pin(pace::orders(fabric)),
        Case::Many => Box::pin(pace::many(fabric)),
        Case::Again => Box::pin(queues::again(fabric)),
        Case::Dropped => Box::pin(queues::dropped(fabric)),
        Case::Budgets => Box::pin(queues::budgets(fabric)),
        Case::Exhausted => Box::pin(queues::exhausted(fabric)),
        Case::Deep => Box::pin(queues::deep(fabric)),
        Case::WrongBlocks => Box::pin(wrong::blocks(fabric)),
        Case::WrongEdges => Box::pin(wrong::edges(fabric)),
        Case::WrongOrder => Box::pin(wrong::order(fabric)),
        Case::Points => Box::pin(points::points(fabric)),
        Case::EarlyAndLate => Box::pin(points::early_and_late(fabric)),
        Case::WrongPoints => Box::pin(points::wrong(fabric)),
        Case::Unattended => Box::pin(progress::unattended(fabric)),
        Case::ByNode(case) => Box::pin(by_node::run(fabric, case)),
        Case::Allreduces => Box::pin(reductions::allreduces(fabric)),
        Case::ScarceReductions => Box::pin(reductions::scarce(fabric)),
        Case::LostReduction(form, moment, loss) => Box::pin(reductions::lost(fabric, form, moment, loss)),
        Case::Lost(form, moment, loss) => Box::pin(losses::lost(fabric, form, moment, loss)),
        Case::PartsLost(form, moment, loss) => {
            Box::pin(parts::lost(fabric, Losing { form, moment, loss }, &[Start, Ready, Wait], None))
        }
        Case::PartsAsked(form, moment, loss) => {
            Box::pin(parts::lost(fabric, Losing { form, moment, loss }, &[Start, Ready, Arrived], None))
        }
        Case::PartsKnown((form, call), moment, loss) => {
            let calls: &[Call] = if call == Arrived { &[Start, Ready, Arrived] } else { &[Start, Ready, Wait] };
            Box::pin(parts::lost(fabric, Losing { form, moment, loss }, calls, Some(call)))
        }
    }
}
