//! The one-way time of a message while receives for other messages are posted: half a round trip
//! between ranks 0 and 1, by the number of posted receives. A library that searches its posted
//! receives for each message takes longer the more there are; one that checks a single place does
//! not.
//!
//! ```text
//! cargo example ping_pong --release -- --ranks 2 --posted 600
//! cargo example ping_pong --release -- --ranks 2 --fabric virt --platform sr8000 --plot ping_pong.svg
//! ```

use onesided::{
    Fabric, ProgramResult,
    fmpl::{Communicator, Fmpl, Options, Receiving},
};
use pico_args::Arguments;
use plotters::prelude::*;
use std::{error::Error, ffi::OsString, path::PathBuf, process::ExitCode};

/// The measurement to make.
#[derive(Clone, Debug)]
struct Measurement {
    /// The maximum number of posted receives besides the one that is awaited.
    posted: usize,
    bytes: usize,
    rounds: usize,
    plot: Option<PathBuf>,
}

/// The results with `posted` receives posted, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Point {
    posted: usize,
    /// The median of half the round trips.
    one_way: f64,
    /// The mean time of the calls that posted the last ones.
    post: Option<f64>,
}

async fn ping_pong(fabric: Fabric, what: Measurement) -> ProgramResult<()> {
    let Measurement { posted, bytes, rounds, ref plot } = what;
    let fmpl = Fmpl::init_with(&fabric, Options::default().indices(posted + 1)).await?;
    let world = fmpl.world();
    if world.len() < 2 {
        return Err("a ping-pong needs two ranks".into());
    }
    if world.me() < 2 {
        let points = measured(world, posted, bytes, rounds).await?;
        if world.me() == 0 {
            table(&points, bytes);
            if let Some(path) = plot {
                draw(path, &points, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
                println!("plot: {}", path.display());
            }
        }
    }
    Ok(fmpl.finalize().await?)
}

/// Measures with 0, 1, 2, 5, 10, 20 … receives posted. Index 0 is for the ping-pong.
async fn measured(world: &Communicator, most: usize, bytes: usize, rounds: usize) -> ProgramResult<Vec<Point>> {
    let (fabric, peer) = (world.fabric(), 1 - world.me());
    let (message, into) = (vec![0u8; bytes], world.buffer::<u8>(bytes)?);
    let others = world.buffer::<u64>(most.max(1))?;
    let micros = |from, to: onesided::Time| to.picos_since(from) as f64 * 1e-6;
    // The first messages of an index look up its areas, and create its descriptors, if any.
    for index in (1..=most).chain(1..=most) {
        let receiving = world.irecv(&others.slice(0..1)?, peer, index).await?;
        world.send(&[0u64], peer, index).await?;
        receiving.wait().await?;
    }
    let mut waiting: Vec<Receiving<'_>> = Vec::with_capacity(most);
    let mut points = Vec::new();
    for posted in steps(most) {
        let (first, begun) = (waiting.len(), fabric.now());
        for index in first..posted {
            waiting.push(world.irecv(&others.slice(index..index + 1)?, peer, index + 1).await?);
        }
        let post = (posted > first).then(|| micros(begun, fabric.now()) / (posted - first) as f64);
        let mut halves = Vec::with_capacity(rounds);
        // The first rounds warm up caches.
        for round in 0..rounds + rounds.min(10) {
            let begun = fabric.now();
            if world.me() == 0 {
                world.send(&message, peer, 0).await?;
                world.recv(&into, peer, 0).await?;
            } else {
                world.recv(&into, peer, 0).await?;
                world.send(&message, peer, 0).await?;
            }
            if round >= rounds.min(10) {
                halves.push(micros(begun, fabric.now()) / 2.0);
            }
        }
        halves.sort_unstable_by(f64::total_cmp);
        points.push(Point { posted, one_way: halves[halves.len() / 2], post });
    }
    // The posted receives also receive their messages.
    for (index, receiving) in waiting.into_iter().enumerate() {
        world.send(&[index as u64], peer, index + 1).await?;
        receiving.wait().await?;
        let mut number = [0];
        fabric.read(&others.slice(index..index + 1)?, &mut number)?;
        assert_eq!(number, [index as u64], "another receive's message");
    }
    Ok(points)
}

/// Returns 0, 1, 2, 5, 10, 20 … and the last number.
fn steps(most: usize) -> Vec<usize> {
    let decades = (0..7).flat_map(|power| [1, 2, 5].map(|digit| digit * 10usize.pow(power)));
    [0].into_iter().chain(decades.filter(|posted| *posted < most)).chain((most > 0).then_some(most)).collect()
}

fn table(points: &[Point], bytes: usize) {
    println!("receives posted   {bytes} bytes one way   posting one");
    for Point { posted, one_way, post } in points {
        let post = post.map_or("–".to_owned(), |post| format!("{post:.3} µs"));
        println!("{posted:>15} {:>17} {post:>13}", format!("{one_way:.3} µs"));
    }
}

/// Writes a plot with a logarithmic x axis.
fn draw(path: &PathBuf, points: &[Point], bytes: usize) -> Result<(), Box<dyn Error + Send + Sync>> {
    const LINE: RGBColor = RGBColor(0x1f, 0x5f, 0x99);
    let text = |size: i32| ("sans-serif", size).into_font();
    let place = |posted: usize| (posted as f64 + 1.0).log2();
    let top = points.iter().fold(0.0, |top: f64, point| top.max(point.one_way)) * 1.3;
    let right = points.last().map_or(1.0, |last| place(last.posted)).max(1.0);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (800, 400)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(14)
            .x_label_area_size(52)
            .y_label_area_size(72)
            .build_cartesian_2d(0.0..right * 1.02, 0.0..top)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("receives posted")
            .y_desc(format!("{bytes} bytes one way (µs)"))
            .x_label_formatter(&|place| format!("{:.0}", 2f64.powf(*place) - 1.0))
            .label_style(text(15))
            .axis_desc_style(text(16))
            .draw()?;
        let line = || points.iter().map(|point| (place(point.posted), point.one_way));
        chart.draw_series(LineSeries::new(line(), LINE.stroke_width(2)))?;
        chart.draw_series(line().map(|at| Circle::new(at, 3, LINE.filled())))?;
        area.present()?;
    }
    Ok(std::fs::write(path, svg)?)
}

const USAGE: &str = "\
Ranks 0 and 1 send each other a message while receives for others are posted, and print how long it takes one way.

  --posted N           the most receives (600)
  --bytes N            the length of the message (8)
  --rounds N           round trips for each number of receives (200)
  --plot FILE          write a plot, too
";

fn options(rest: Vec<OsString>) -> Result<Measurement, pico_args::Error> {
    let mut rest = Arguments::from_vec(rest);
    let mut number = |name, default: usize| Ok(rest.opt_value_from_str(name)?.unwrap_or(default));
    let (posted, bytes, rounds) = (number("--posted", 600)?, number("--bytes", 8)?, number("--rounds", 200)?.max(1));
    let plot = rest.opt_value_from_os_str("--plot", |path| Ok::<_, std::convert::Infallible>(PathBuf::from(path)))?;
    match rest.finish().first() {
        None => Ok(Measurement { posted, bytes, rounds, plot }),
        Some(word) => {
            Err(pico_args::Error::ArgumentParsingFailed { cause: format!("there is no `{}`", word.display()) })
        }
    }
}

fn main() -> ExitCode {
    onesided::launch_with(USAGE, |rest| {
        options(rest).map(|what| async move |fabric| ping_pong(fabric, what.clone()).await)
    })
}
