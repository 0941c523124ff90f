//! Statistics, regions and motors.

use tectum::NativeCall;
use tectum::kernel::arguments::Slices;
use tectum::kernel::math::tanh;

use super::super::draw::{NOISE_UNIT, draw};
use super::super::layout::*;
use super::super::shape::REGIONS;
use super::Act;
use super::{number, ramp};

/// Statistics from the sums over rows.
struct Statistics {
    mean: f32,
    size: f32,
    variance: f32,
    temporal: f32,
    gradient: [f32; 3],
}

pub fn native(_: &NativeCall<'_>, arguments: Act<Slices<'_>>) {
    let Act {
        rows,
        live,
        control,
        site_means: sites,
        memory,
        descriptor,
        report,
        nx,
        ny,
        nz,
        content,
        channels,
        block,
        motors,
    } = arguments;
    let cells = [nx, ny, nz];
    let found = statistics(rows, cells, content, channels);

    report.fill(0.0);
    let moved = &mut report[REPORT_MOTORS..][..motors];
    move_motors(live, control, memory[MEMORY_CONFIDENCE], &found, moved);
    memory[MEMORY_MOTORS..][..MAX_MOTORS].fill(0.0);
    memory[MEMORY_MOTORS..][..motors].copy_from_slice(moved);
    let kept = [
        (MEMORY_MEAN, found.mean),
        (MEMORY_SIZE, found.size),
        (MEMORY_VARIANCE, found.variance),
        (MEMORY_TEMPORAL, found.temporal),
    ];
    kept.into_iter().for_each(|(at, value)| memory[at] = value);
    let told = [
        (REPORT_DRIVE, control[CONTROL_DRIVE]),
        (REPORT_EXPLORE, control[CONTROL_EXPLORE]),
        (REPORT_INTENSITY, control[CONTROL_INTENSITY]),
        (REPORT_PLACE_KIND, control[CONTROL_PLACE_KIND]),
        (REPORT_NOVELTY, control[CONTROL_NOVELTY]),
        (REPORT_ERROR, control[CONTROL_ERROR]),
        (REPORT_INFORMATION, memory[MEMORY_INFORMATION]),
        (REPORT_CONFIDENCE, memory[MEMORY_CONFIDENCE]),
        (REPORT_MEAN, found.mean),
        (REPORT_SIZE, found.size),
        (REPORT_VARIANCE, found.variance),
    ];
    told.into_iter().for_each(|(at, value)| report[at] = value);
    report[REPORT_TOP..][..TOP].copy_from_slice(&memory[MEMORY_TOP..][..TOP]);
    let words = [
        (REPORT_NEAREST, MEMORY_NEAREST),
        (REPORT_STORED, MEMORY_STORED),
        (REPORT_ATTRACTOR, MEMORY_ATTRACTOR),
        (REPORT_KEPT, MEMORY_KEPT),
    ];
    words
        .into_iter()
        .for_each(|(to, from)| report[to] = memory[from]);
    report[REPORT_PLACE..][..3].copy_from_slice(&control[CONTROL_PLACE..][..3]);
    report[REPORT_GRADIENT..][..3].copy_from_slice(&found.gradient);
    regions(sites, cells.map(|size| size / block), content, descriptor);
}

fn statistics(
    rows: &[f32],
    [nx, ny, nz]: [usize; 3],
    content: usize,
    channels: usize,
) -> Statistics {
    // Sums over the rows of one X, then over X: short sums of equal length lose little precision.
    let mut total = [0.0f32; ROW_WORDS];
    let mut across = [0.0f32; 3];
    for (x, plane) in rows.chunks_exact(ny * ROW_WORDS).take(nx).enumerate() {
        let (plane, _) = plane.as_chunks::<ROW_WORDS>();
        let mut sums = [0.0f32; ROW_WORDS];
        for row in plane {
            sums.iter_mut()
                .zip(row)
                .for_each(|(sum, word)| *sum += word);
        }
        if x == 0 {
            across[0] -= sums[0];
        }
        if x + 1 == nx {
            across[0] += sums[0];
        }
        across[1] += plane[ny - 1][0] - plane[0][0];
        total
            .iter_mut()
            .zip(sums)
            .for_each(|(total, sum)| *total += sum);
    }
    across[2] = total[4] - total[3];
    let elements = (nx * ny * nz * content) as f32;
    let mean = total[0] / elements;
    Statistics {
        mean,
        size: total[1] / elements,
        variance: (total[2] / elements - mean * mean).max(0.0),
        temporal: total[5] / (nx * ny * nz * channels / 4) as f32,
        gradient: [
            across[0] / (ny * nz * content) as f32,
            across[1] / (nx * nz * content) as f32,
            across[2] / (nx * ny * content) as f32,
        ],
    }
}

fn move_motors(
    live: &[u32],
    control: &[f32],
    confidence: f32,
    found: &Statistics,
    moved: &mut [f32],
) {
    let key = [live[LIVE_KEY], live[LIVE_KEY + 1]];
    let noise = |index: usize| NOISE_UNIT * draw(0xffff_fe00 + index as u32, key) as f32;
    let explore = 0.3 * number(live, LIVE_EXPLORATION) * control[CONTROL_EXPLORE];
    let gain = (1.0
        + ramp(0.32 - confidence, 0.0, 0.04) * (0.5 + 2.0 * (0.3 - confidence).max(0.0)))
    .min(3.0);
    for (motor, moved) in moved.iter_mut().enumerate() {
        let raw = match motor {
            0 => 5.0 * found.gradient[0],
            1 => 5.0 * found.gradient[1],
            2 => found.temporal * control[CONTROL_STRATEGIC_WEIGHT] / 0.3,
            3 => 0.5 * found.gradient[2],
            _ => 0.1 * noise(2 * motor),
        };
        *moved = (gain * tanh(raw + explore * noise(2 * motor + 1))).clamp(-1.0, 1.0);
    }
}

/// Means of the regions.
fn regions(sites: &[f32], size: [usize; 3], content: usize, descriptor: &mut [f32]) {
    let part = size.map(|size| size / 4);
    let scale = 1.0 / (part[0] * part[1] * part[2]) as f32;
    for (region, mean) in descriptor
        .chunks_exact_mut(content)
        .take(REGIONS)
        .enumerate()
    {
        let first = [
            region / 16 * part[0],
            region / 4 % 4 * part[1],
            region % 4 * part[2],
        ];
        mean.fill(0.0);
        for x in first[0]..first[0] + part[0] {
            for y in first[1]..first[1] + part[1] {
                for z in first[2]..first[2] + part[2] {
                    let site = &sites[((x * size[1] + y) * size[2] + z) * content..][..content];
                    mean.iter_mut()
                        .zip(site)
                        .for_each(|(mean, site)| *mean += site);
                }
            }
        }
        mean.iter_mut().for_each(|mean| *mean *= scale);
    }
}
