//! What exchanges cost that nobody has published, beside those that somebody has.

use crate::{
    prdma_paper::{How, Pattern, PrdmaPlan, PrdmaRuns},
    quantity,
    table::{RULED_HEADER, WIDTH, number, wrapped},
};
use comfy_table::{ContentArrangement, Table};
use prdma_offload::Form;

const FAST: How = How::persistent(Form::Fast);
const MRC: How = How::persistent(Form::Mrc);
const CPU: How = How::persistent(Form::Cpu);
const FOUR: How = How::persistent(Form::Queues(4));
const TWO: How = How::persistent(Form::Queues(2));

/// Sizes of the first table; the report has all of them.
const SIZES: [usize; 7] = [0, 1024, 8192, 16_384, 32_768, 49_152, PrdmaPlan::MOST];

/// Start and wait of each form by size, and in three dimensions.
pub fn exchanges(runs: &PrdmaRuns) -> String {
    let micros = |pattern, how, size| {
        let seconds = runs.of(pattern, how).and_then(|run| run.at(size));
        seconds.map_or("–".to_owned(), |seconds| format!("{:.2}", seconds * 1e6))
    };
    let ratio = |pattern, size| {
        let ratios = runs.ratios(pattern, MRC, FAST);
        ratios.iter().find(|(at, _)| *at == size).map_or("–".to_owned(), |(_, ratio)| format!("{ratio:.2}"))
    };
    let mut by_size = table(&[
        "bytes",
        "1-D FAST*",
        "1-D MRC*",
        "ratio*",
        "1-D CPU",
        "1-D FAST, made anew",
        "2-D FAST",
        "2-D 2 queues",
        "2-D MRC",
        "ratio",
    ]);
    for size in SIZES {
        let (line, plane) = (Pattern::Line, Pattern::Plane);
        by_size.add_row(
            [
                quantity::count(size as u64),
                micros(line, FAST, size),
                micros(line, MRC, size),
                ratio(line, size),
                micros(line, CPU, size),
                micros(line, How::anew(Form::Fast), size),
                micros(plane, FAST, size),
                micros(plane, TWO, size),
                micros(plane, MRC, size),
                ratio(plane, size),
            ]
            .map(number),
        );
    }
    let mut in_space = table(&["neighbours", "FAST", "4 queues", "2 queues", "MRC", "CPU"]);
    for pattern in [Pattern::Space, Pattern::Corners] {
        let cells = [FAST, FOUR, TWO, MRC, CPU].map(|how| micros(pattern, how, PrdmaPlan::IN_SPACE));
        let first = format!("{} ({pattern})", pattern.neighbours());
        in_space.add_row([first].into_iter().chain(cells).map(number));
    }
    for table in [&mut by_size, &mut in_space] {
        for column in table.column_iter_mut() {
            column.set_padding((0, 1));
        }
    }
    format!(
        "\nEXCHANGES: start and wait of the slowest of 36 ranks, one a node, in µs\n{}\n\n{} bytes to each neighbour\n{}\n{}",
        by_size.trim_fmt(),
        quantity::count(PrdmaPlan::IN_SPACE as u64),
        in_space.trim_fmt(),
        wrapped(
            "* The paper measured these forms. All others are predictions that nobody has published, on the machine that the figures \
             above calibrate; nothing is compared."
        )
    )
}

fn table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(RULED_HEADER).set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table.set_header(head.iter().map(|name| number((*name).to_owned())));
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{prdma_paper::run, progress::Progress};

    #[test]
    fn tables_fit_the_terminal_and_say_what_is_published() {
        let mut plan = PrdmaPlan { iterations: 2, warm_up: 1, ..PrdmaPlan::quick(0) };
        for job in &mut plan.jobs {
            job.sizes.retain(|size| [0, PrdmaPlan::IN_SPACE].contains(size));
        }
        plan.jobs.retain(|job| job.pattern != Pattern::Corners);
        let text = exchanges(&run(&plan, &mut Progress::silent()).expect("it runs"));
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(WIDTH)), "{text}");
        assert!(text.contains("1-D MRC*") && text.contains("nobody has published"), "{text}");
        assert!(text.lines().any(|line| line.contains("6 (3-D 7-point)") && !line.contains('–')), "{text}");
    }
}
