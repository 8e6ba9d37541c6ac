//! Small jobs under every order of delivery, and mistakes that must be found; `cargo xtask explore`
//! explores the larger ones.

use checks::exploration;

#[test]
fn messages_in_every_order() {
    exploration::check(checks::fmpl::explorations());
}

#[test]
#[ignore]
fn tmp_list() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let limit: u64 = std::env::var("LIMIT").map_or(300_000, |l| l.parse().unwrap());
    for e in checks::fmpl::explorations() {
        if !e.name().contains(&only) {
            continue;
        }
        let start = std::time::Instant::now();
        let out = e.explore(limit, |_| std::ops::ControlFlow::Continue(()));
        let text = match out {
            checks::exploration::Explored::Orders(r) => match r.violation() {
                Some(v) => format!(
                    "VIOLATED {} in {} moves; {} states\n{}",
                    v.what,
                    v.moves,
                    r.states,
                    if std::env::var("TL").is_ok() { format!("{v}") } else { String::new() }
                ),
                None => format!("{r}"),
            },
            checks::exploration::Explored::Random(s) => format!("{s}"),
        };
        println!("## {}: {text} {:.1} s", e.name(), start.elapsed().as_secs_f64());
    }
}
