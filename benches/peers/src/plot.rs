//! The figures as drawings: a bar chart for each workload, and a curve of latencies for each timetable.

use crate::latency::QUANTILES;
use crate::library::OURS;
use crate::run::Finished;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

const SIZE: (u32, u32) = (1200, 480);
const FONT: &str = "sans-serif";
/// Room for the titles of the axes, in pixels.
const MARGIN: i32 = 16;
const LABELS: u32 = 70;

type Drawing<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws each row into a file of this folder.
pub fn draw(folder: &Path, all: &[Finished]) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    for finished in all {
        let file = folder.join(format!("{}.svg", finished.row.key.replace('/', "-")));
        let drawing = SVGBackend::new(&file, SIZE).into_drawing_area();
        drawing.fill(&WHITE)?;
        match finished.arrivals_per_second {
            Some(rate) => curves(&drawing, finished, rate)?,
            None => bars(&drawing, finished)?,
        }
        drawing.present()?;
    }
    Ok(())
}

/// A bar for each library, the shortest first, on a logarithmic scale.
fn bars(drawing: &Drawing, finished: &Finished) -> Result<(), Box<dyn Error>> {
    let sums =
        finished.outcomes.iter().filter_map(|(library, outcome)| Some((library.name, outcome.summary()?)));
    let mut sums: Vec<_> = sums.collect();
    sums.sort_by(|(_, one), (_, other)| one.median.total_cmp(&other.median));
    let (Some((_, least)), Some((_, most))) = (sums.first(), sums.last()) else { return Ok(()) };
    let (bottom, top) = (least.low.min(least.median) / 2.0, most.high * 2.0);
    let mut chart = ChartBuilder::on(drawing)
        .caption(finished.row.title, (FONT, 20))
        .margin(MARGIN)
        .x_label_area_size(LABELS / 2)
        .y_label_area_size(LABELS)
        .build_cartesian_2d((0..sums.len()).into_segmented(), (bottom..top).log_scale())?;
    let name = |place: &SegmentValue<usize>| match place {
        SegmentValue::CenterOf(place) | SegmentValue::Exact(place) => {
            sums.get(*place).map_or_else(String::new, |(name, _)| (*name).to_owned())
        }
        SegmentValue::Last => String::new(),
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(sums.len())
        .x_label_formatter(&name)
        .y_desc(if finished.row.key == "idle-bytes" { "bytes" } else { "ns" })
        .draw()?;
    for (place, (name, sum)) in sums.iter().enumerate() {
        let colour = if *name == OURS { RED } else { BLUE };
        let corners = [(SegmentValue::Exact(place), bottom), (SegmentValue::Exact(place + 1), sum.median)];
        let mut bar = Rectangle::new(corners, colour.mix(0.6).filled());
        bar.set_margin(0, 0, 8, 8);
        chart.draw_series([bar])?;
        let middle = SegmentValue::CenterOf(place);
        chart.draw_series([ErrorBar::new_vertical(middle, sum.low, sum.median, sum.high, BLACK, 8)])?;
    }
    Ok(())
}

/// Latency by quantile, both logarithmic: each step to the right is a tenth of the messages that are slower.
fn curves(drawing: &Drawing, finished: &Finished, rate: f64) -> Result<(), Box<dyn Error>> {
    // The last quantile is the slowest of all, for which there is no place to the right.
    let places: Vec<_> = QUANTILES.iter().take_while(|&&quantile| quantile < 1.0).enumerate().collect();
    let rarity = |quantile: f64| 1.0 / (1.0 - quantile);
    let lines = finished.outcomes.iter().map(|(library, outcome)| {
        let points = places.iter().filter_map(|&(place, &quantile)| {
            // Half a nanosecond for none: a logarithm needs something.
            Some((rarity(quantile), outcome.latency(place)?.median.max(0.5) / 1e3))
        });
        (library.name, points.collect::<Vec<_>>())
    });
    let lines: Vec<_> = lines.filter(|(_, points)| !points.is_empty()).collect();
    let all = || lines.iter().flat_map(|(_, points)| points.iter().map(|point| point.1));
    let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
    if lines.is_empty() {
        return Ok(());
    }
    let right = rarity(*places[places.len() - 1].1);
    let mut chart = ChartBuilder::on(drawing)
        .caption(format!("{}, {rate:.0} arrivals/s", finished.row.title), (FONT, 20))
        .margin(MARGIN)
        .x_label_area_size(LABELS / 2)
        .y_label_area_size(LABELS)
        .build_cartesian_2d((1.0..right).log_scale(), (least / 2.0..most * 2.0).log_scale())?;
    let percent = |rarity: &f64| format!("{:.6}", 100.0 - 100.0 / rarity);
    let percent = |rarity: &f64| format!("{} %", percent(rarity).trim_end_matches('0').trim_end_matches('.'));
    chart.configure_mesh().x_label_formatter(&percent).x_desc("messages").y_desc("µs").draw()?;
    for (number, (name, points)) in lines.into_iter().enumerate() {
        let colour = Palette99::pick(number).to_rgba();
        let style = colour.stroke_width(if name.starts_with(OURS) { 3 } else { 1 });
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    Ok(())
}
