//! Sums over all ranks by the barrier unit, which adds while the ranks compute the next round.
//!
//! π is the integral of 4 / (1 + x²) from 0 to 1. In each round all ranks take twice as many points
//! as in the previous one, whose sum is still in progress. The sum is exact and rounded once, so it
//! does not depend on the order in which ranks arrive, nor on their nodes.
//!
//! ```text
//! cargo example overlapped_sum --release -- --ranks 4
//! cargo example overlapped_sum --release --features onesided/ofi -- --ranks 4 --fabric cluster
//! ```

use onesided::{
    Fabric, Group, ProgramResult,
    barrier::{ReduceOp, Reduction},
};

/// The rounds, the last of which has 2¹⁶ · 1000 points.
const ROUNDS: u32 = 17;

/// Returns the rank's share of the integral with `points` points: every `ranks`th of them.
fn share(points: u64, rank: u64, ranks: u64) -> f64 {
    let width = 1.0 / points as f64;
    let height = |point: u64| 4.0 / (1.0 + ((point as f64 + 0.5) * width).powi(2));
    (rank..points).step_by(ranks as usize).map(height).sum::<f64>() * width
}

async fn overlapped_sum(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let (me, ranks) = (fabric.rank().number().into(), fabric.ranks() as u64);
    let mut sum = Reduction::<f64>::new(&mut world).await?;
    let begun = fabric.now();
    sum.start(ReduceOp::BfpSum, &[share(1000, me, ranks)])?;
    let mut waited = 0;
    for round in 1..ROUNDS {
        let next = share(1000 << round, me, ranks);
        let before = fabric.now();
        sum.wait().await?;
        waited += fabric.now().picos_since(before);
        sum.start(ReduceOp::BfpSum, &[next])?;
    }
    let pi = sum.wait().await?[0];
    if (pi - std::f64::consts::PI).abs() > 1e-11 {
        return Err(format!("{pi} is not π").into());
    }
    if me == 0 {
        let (all, waited) = (fabric.now().picos_since(begun) as f64 * 1e-9, waited as f64 * 1e-9);
        println!("{ROUNDS} sums over {ranks} ranks in {all:.1} ms, {waited:.1} ms of them waiting: {pi}");
    }
    // The other ranks may need this one's gates until they, too, are done.
    Ok(world.barrier().await?)
}

fn main() -> std::process::ExitCode {
    onesided::launch(overlapped_sum)
}
