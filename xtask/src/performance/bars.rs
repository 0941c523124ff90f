//! Horizontal bars as SVG text: the same numbers give the same bytes.

use std::fmt::Write as _;

/// One bar.
pub struct Bar {
    /// The label before it.
    pub name: String,
    /// Its length.
    pub value: f64,
    /// The ends of its interval.
    pub ends: Option<(f64, f64)>,
    /// The label after it.
    pub text: String,
}

const WIDTH: f64 = 960.0;
/// Room for names before the bars and for numbers after them.
const LEFT: f64 = 330.0;
const RIGHT: f64 = 110.0;
const TOP: f64 = 44.0;
const STEP: f64 = 16.0;

/// A picture of bars from 0, with a line at a mark. A bar that is much longer than the others is
/// cut at four times the mark; its number is next to it.
pub fn bars(title: &str, bars: &[Bar], mark: f64, unit: &str) -> String {
    let longest = bars
        .iter()
        .map(|bar| bar.ends.map_or(bar.value, |(_, high)| high))
        .fold(mark, f64::max);
    let most = longest.min(4.0 * mark) * 1.02;
    let height = TOP + STEP * bars.len() as f64 + 12.0;
    let x = |value: f64| LEFT + (value.min(most) / most) * (WIDTH - LEFT - RIGHT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"8\" y=\"20\" font-size=\"14\">{}</text>\n",
        escaped(title)
    );
    for (index, bar) in bars.iter().enumerate() {
        let y = TOP + STEP * index as f64;
        let color = if bar.value < mark && bar.ends.is_some() {
            "#be5028"
        } else {
            "#1f5aa0"
        };
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            y + 10.0,
            escaped(&bar.name)
        );
        let _ = writeln!(
            svg,
            "<rect x=\"{LEFT:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"11\" fill=\"{color}\"/>",
            x(bar.value) - LEFT
        );
        if let Some((low, high)) = bar.ends {
            let _ = writeln!(
                svg,
                "<path d=\"M{:.1} {:.1}H{:.1}\" stroke=\"black\"/>",
                x(low),
                y + 5.5,
                x(high)
            );
        }
        let end = x(bar.ends.map_or(bar.value, |(_, high)| high));
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            end + 6.0,
            y + 10.0,
            escaped(&bar.text)
        );
    }
    let at = x(mark);
    let _ = writeln!(
        svg,
        "<path d=\"M{at:.1} {:.1}V{:.1}\" stroke=\"#606060\" stroke-dasharray=\"4 3\"/>",
        TOP - 6.0,
        height - 8.0
    );
    let _ = writeln!(
        svg,
        "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{mark}{}</text>",
        TOP - 10.0,
        escaped(unit)
    );
    svg + "</svg>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
