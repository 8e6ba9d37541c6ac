//! Ranks that are processes, deaths, and limits of a process: the tests that need separate
//! processes. Without arguments, or with names of cases, this program is the test; it runs itself
//! with arguments that select other roles.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod abort;
#[cfg(target_os = "linux")]
mod exhaustion;
#[cfg(target_os = "linux")]
mod existing;
#[cfg(target_os = "linux")]
mod guests;
#[cfg(target_os = "linux")]
mod harness;
#[cfg(target_os = "linux")]
mod helpers;
#[cfg(target_os = "linux")]
mod jobs;
#[cfg(target_os = "linux")]
mod rank_taken;
#[cfg(target_os = "linux")]
mod ranks;
#[cfg(target_os = "linux")]
mod stuck;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["launch", ranks, scenario] => jobs::launch(ranks.parse().expect("a number"), scenario),
        ["rank", scenario] => ranks::rank(scenario),
        ["launch-script", ranks, script] => rank_taken::launch_script(ranks, script),
        ["taken", scenario] => rank_taken::rank(scenario),
        ["limited", scenario] => exhaustion::limited(scenario),
        ["group-rank", part] => exhaustion::group_rank(part),
        ["large-rank"] => exhaustion::large_rank(),
        ["aborted", ranks] => abort::launch(ranks),
        ["aborts"] => abort::rank(),
        ["guest", part] => guests::guest(part),
        ["aborted-guests"] => guests::launch_aborted(),
        ["waits", scenario] => stuck::waiting_rank(scenario),
        _ => {
            let modules = [
                ("helpers", helpers::CASES),
                ("jobs", jobs::CASES),
                ("rank_taken", rank_taken::CASES),
                ("exhaustion", exhaustion::CASES),
                ("stuck", stuck::CASES),
                ("abort", abort::CASES),
                ("guests", guests::CASES),
            ];
            harness::run(&modules, &args)
        }
    }
}
