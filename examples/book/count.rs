//! A program with its own argument: `cargo example count -- --ranks 4 10`.

use onesided::{Fabric, ProgramResult};

async fn count(fabric: Fabric, to: u64) -> ProgramResult<u64> {
    Ok(to + u64::from(fabric.rank().number()))
}

fn main() -> std::process::ExitCode {
    onesided::launch_with("Counts.\n\n  N   how far\n", |rest| {
        let [to] = &rest[..] else { return Err(format!("one number, not {rest:?}")) };
        let to = to.to_string_lossy().parse().map_err(|error| format!("N: {error}"))?;
        Ok(async move |fabric| count(fabric, to).await)
    })
}
