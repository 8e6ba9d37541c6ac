//! An unchanged schedule allocates nothing. This is a separate program, because counting needs a
//! global allocator that affects the whole program.

use checks::jobs::threads;
use rdma_fabric::{Fabric, Group, ProgramResult, join};
use xmp_reflect::{Align, Array, Format, NodeSet, Nodes, Order, Reflect, Schedule, Shadow, Template, Widths};

/// Reflects a field of one node, which is its own neighbour on all sides, so that no call waits.
async fn program(fabric: Fabric) -> ProgramResult<Vec<u64>> {
    let group = Group::world(&fabric).await?;
    let mut set = NodeSet::new(group, Nodes::new(&[1, 1], Order::LastFastest)?)?;
    let template = Template::new(&[0..16, 0..16], &[Format::Block, Format::Block], set.nodes())?;
    let aligned = template.align(&[0..16, 0..16, 0..4], &[Align::with(0), Align::with(1), Align::Collapsed])?;
    let mapping = aligned.shadow(&[Shadow::of(2), Shadow::of(2), Shadow::NONE])?;
    let (one, other): (Array<f64>, Array<f32>) = (set.array(&mapping)?, set.array(&mapping)?);
    let around = Widths::WHOLE.periodic();
    let reflect = Reflect::widths(&[around, around, Widths::NONE]);
    let mut schedule = Schedule::new(&mut set, &[&one, &other], &reflect).await?;
    let mut allocated = Vec::new();
    for _ in 0..3 {
        let counted = allocation_counter::measure(|| {
            let ran = join::now(async {
                schedule.start().await?;
                schedule.wait().await?;
                set.reflect(&one, &reflect).await
            });
            ran.expect("nobody else is waited for").expect("nothing goes wrong");
        });
        allocated.push(counted.count_total);
    }
    Ok(allocated)
}

#[test]
fn an_unchanged_schedule_allocates_nothing() {
    let [first, second, third] = threads(1).run(&program).unwrap()[0][..] else { panic!("three counts") };
    // The first call of `reflect` creates a schedule, and the first put caches its destination.
    assert!(first > 0, "counting works");
    assert_eq!((second, third), (0, 0));
}
