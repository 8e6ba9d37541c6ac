//! Ranks that bring their own runtime: `cargo example own_runtime -- --ranks 4`.

fn main() -> std::process::ExitCode {
    onesided::launch_shared(|fabric| {
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(async move {
            let mut world = onesided::Group::world(&fabric).await?;
            Ok(world.barrier().await?)
        })
    })
}
