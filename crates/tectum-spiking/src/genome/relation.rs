//! Relations between the voxels of a source box and those of a target box, mostly one axis at a
//! time.

use super::draw;

/// A rule that maps each source voxel to the target voxels it reaches. Targets outside the box are
/// dropped.
#[derive(Debug, Clone, PartialEq)]
pub enum Relation {
    /// A product: a target is reached if its coordinate is reached on each axis.
    Axes([Axis; 3]),
    /// The source folded into a smaller target, `s mod m` on each axis; or repeated to fill a
    /// target with at least as many voxels.
    Tile,
    /// The next voxel, x first, then y, then z; the source voxel is first moved into the target
    /// box.
    Sweep,
    /// One voxel in each layer of z, rotated about the centre of x and y from −90° in the first
    /// layer to 90° in the last.
    RotateZ,
    /// One random voxel for each source neuron.
    Random,
}

/// The target coordinates of one axis that a source coordinate reaches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    /// The axis of the source coordinate: 0, 1, 2 for x, y, z.
    pub from: usize,
    /// Source coordinates that reach any target.
    pub sources: SourceRule,
    /// Target coordinates that they reach.
    pub to: TargetRule,
}

/// Source coordinates of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SourceRule {
    /// All.
    All,
    /// Those between the two, inclusive.
    Between(i64, i64),
    /// The last one.
    Last,
}

/// Target coordinates, as a function of the source coordinate `s`, the source length `n` and the
/// target length `m`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TargetRule {
    /// All.
    All,
    /// All but `s`.
    Others,
    /// `s + k` for k between the two, inclusive; ends beyond the box are clamped.
    Near(i64, i64),
    /// Those between the two, inclusive.
    Between(i64, i64),
    /// The last one.
    Last,
    /// `min(s, m − 1)`.
    Clamped,
    /// `s / k`, rounded down.
    Divided(u32),
    /// `n ≥ m`: `⌊s·m / n⌋`; `n < m`: every t with `⌊t·n / m⌋ = s`.
    Scaled,
    /// `min(⌊s·m / n⌋, m − 1)`, also where `n < m`.
    ScaledToOne,
    /// As `Scaled`, within blocks of `side` coordinates, of which alternately `choose` are taken
    /// and `skip` skipped.
    Tiled {
        /// Length of a block.
        side: u32,
        /// Consecutive blocks taken.
        choose: u32,
        /// Consecutive blocks skipped.
        skip: u32,
    },
    /// `s mod m`.
    Folded,
    /// Every t with `t mod n = s`.
    Repeated,
    /// `s + 1` for an even s with a neighbour in the source, `s − 1` for an odd one.
    Paired,
    /// Every t whose binary form, as wide as m's, has a 1 at place s from the left.
    ExpandedBits,
    /// Every t for which place t from the left of s's binary form, at least m wide, is 1.
    ReducedBits,
    /// Every t whose binary form, n wide, has a 1 at place s from the left.
    EncodedBits,
    /// Every t for which place t from the left of s's binary form, m wide (higher bits cut off), is 1.
    DecodedBits,
}

/// Target coordinates of one axis: an arithmetic sequence, filtered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    start: u32,
    end: u32,
    step: u32,
    keep: SpanFilter,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum SpanFilter {
    All,
    Not(u32),
    /// Those with this bit set.
    WithBit(u32),
    /// Those for which bit `top − t` of the value is set.
    BitOf {
        value: u32,
        top: u32,
    },
}

impl Axis {
    /// An axis that uses its own coordinate, for all sources.
    pub(super) fn own(axis: usize, to: TargetRule) -> Self {
        Self {
            from: axis,
            sources: SourceRule::All,
            to,
        }
    }

    /// The target coordinates of a source coordinate; none if it is not a source.
    pub(super) fn span(&self, s: u32, n: u32, m: u32) -> Option<Span> {
        let is_source = match self.sources {
            SourceRule::All => true,
            SourceRule::Between(least, most) => (least..=most).contains(&i64::from(s)),
            SourceRule::Last => s == n - 1,
        };
        let span = is_source.then(|| self.to.span(s, n, m))?;
        (span.start < span.end).then_some(span)
    }

    /// The number of pairs of source and target coordinates, if possible without enumeration.
    pub(super) fn pairs(&self, n: u32, m: u32) -> u64 {
        let sources = match self.sources {
            SourceRule::All => 0..n,
            SourceRule::Between(least, most) => clipped(least, most, n),
            SourceRule::Last => n - 1..n,
        };
        let count = u64::from(sources.end - sources.start);
        match self.to {
            TargetRule::All | TargetRule::Between(..) | TargetRule::Last => {
                count * self.to.span(0, n, m).len()
            }
            TargetRule::Others => {
                count * u64::from(m) - u64::from(sources.end.min(m).saturating_sub(sources.start))
            }
            TargetRule::Near(least, most) => at_most(&sources, most, m).saturating_sub(at_most(
                &sources,
                least.saturating_sub(1),
                m,
            )),
            TargetRule::Scaled if count == u64::from(n) => u64::from(n.max(m)),
            _ => sources.map(|s| self.to.span(s, n, m).len()).sum(),
        }
    }
}

/// Pairs with `t − s ≤ most`: the sum over s of `s + most + 1`, clamped to 0 to m.
fn at_most(sources: &std::ops::Range<u32>, most: i64, m: u32) -> u64 {
    let (start, end, m) = (
        i128::from(sources.start),
        i128::from(sources.end),
        i128::from(m),
    );
    let reach = i128::from(most) + 1;
    // Sources before `low` reach no target, those from `high` on reach all.
    let low = (-reach).clamp(start, end);
    let high = (m - reach).clamp(low, end);
    let sum = (high - low) * (low + high - 1) / 2 + (high - low) * reach + (end - high) * m;
    u64::try_from(sum).unwrap_or(u64::MAX)
}

/// The part of `least..=most` within a box's `0..len`.
fn clipped(least: i64, most: i64, len: u32) -> std::ops::Range<u32> {
    let start = least.clamp(0, i64::from(len)) as u32;
    let end = most.saturating_add(1).clamp(0, i64::from(len)) as u32;
    start..end.max(start)
}

impl TargetRule {
    fn span(self, s: u32, n: u32, m: u32) -> Span {
        let (wide_s, wide_n, wide_m) = (u64::from(s), u64::from(n), u64::from(m));
        match self {
            TargetRule::All => Span::run(0..m),
            TargetRule::Others => Span {
                keep: SpanFilter::Not(s),
                ..Span::run(0..m)
            },
            TargetRule::Near(least, most) => Span::run(clipped(
                i64::from(s).saturating_add(least),
                i64::from(s).saturating_add(most),
                m,
            )),
            TargetRule::Between(least, most) => Span::run(clipped(least, most, m)),
            TargetRule::Last => Span::one(m - 1, m),
            TargetRule::Clamped => Span::one(s.min(m - 1), m),
            TargetRule::Divided(by) => Span::one(s / by, m),
            TargetRule::Scaled => scaled(wide_s, wide_n, wide_m),
            TargetRule::ScaledToOne => {
                Span::one((wide_s * wide_m / wide_n).min(wide_m - 1) as u32, m)
            }
            TargetRule::Tiled { side, choose, skip } => {
                let block = s / side;
                let is_taken = block % (choose + skip) < choose
                    && (u64::from(block) + 1) * u64::from(side) <= wide_n;
                if is_taken {
                    scaled(u64::from(s % side), u64::from(side), wide_m)
                } else {
                    Span::run(0..0)
                }
            }
            TargetRule::Folded => Span::one(s % m, m),
            TargetRule::Repeated => Span {
                step: n,
                ..Span::run(s..m.max(s))
            },
            TargetRule::Paired if s % 2 == 1 => Span::one(s - 1, m),
            TargetRule::Paired if s + 1 < n => Span::one(s + 1, m),
            TargetRule::Paired => Span::run(0..0),
            TargetRule::ExpandedBits => with_bit(u32::BITS - m.leading_zeros(), s, m),
            TargetRule::ReducedBits => {
                let width = m.max((u32::BITS - s.leading_zeros()).max(1));
                Span {
                    keep: SpanFilter::BitOf {
                        value: s,
                        top: width - 1,
                    },
                    ..Span::run(0..m)
                }
            }
            TargetRule::EncodedBits => with_bit(n, s, m),
            TargetRule::DecodedBits => Span {
                keep: SpanFilter::BitOf {
                    value: s,
                    top: m - 1,
                },
                ..Span::run(0..m)
            },
        }
    }
}

/// `⌊s·m / n⌋`, or all t with `⌊t·n / m⌋ = s`, that is `⌈s·m / n⌉` to `⌈(s + 1)·m / n⌉`.
fn scaled(s: u64, n: u64, m: u64) -> Span {
    match n >= m {
        true => Span::one((s * m / n) as u32, m as u32),
        false => Span::run((s * m).div_ceil(n) as u32..((s + 1) * m).div_ceil(n) as u32),
    }
}

/// Every t below m whose form of `width` bits has a 1 at place s from the left.
fn with_bit(width: u32, s: u32, m: u32) -> Span {
    match width.checked_sub(s + 1) {
        Some(bit) if bit < u32::BITS => Span {
            keep: SpanFilter::WithBit(bit),
            ..Span::run(0..m)
        },
        _ => Span::run(0..0),
    }
}

impl Span {
    fn run(range: std::ops::Range<u32>) -> Self {
        Self {
            start: range.start,
            end: range.end,
            step: 1,
            keep: SpanFilter::All,
        }
    }

    /// One coordinate, if it is within the box.
    fn one(t: u32, m: u32) -> Self {
        if t < m {
            Self::run(t..t + 1)
        } else {
            Self::run(0..0)
        }
    }

    fn keeps(self, t: u32) -> bool {
        match self.keep {
            SpanFilter::All => true,
            SpanFilter::Not(other) => t != other,
            SpanFilter::WithBit(bit) => t >> bit & 1 == 1,
            SpanFilter::BitOf { value, top } => top
                .checked_sub(t)
                .is_some_and(|bit| bit < u32::BITS && value >> bit & 1 == 1),
        }
    }

    /// The coordinates, ascending.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (self.start..self.end)
            .step_by(self.step as usize)
            .filter(move |t| self.keeps(*t))
    }

    pub fn contains(self, t: u32) -> bool {
        (self.start..self.end).contains(&t)
            && (t - self.start).is_multiple_of(self.step)
            && self.keeps(t)
    }

    /// The number of coordinates. Spans filtered by bits start at 0.
    pub fn len(self) -> u64 {
        let all = u64::from(self.end.saturating_sub(self.start)).div_ceil(u64::from(self.step));
        match self.keep {
            SpanFilter::All => all,
            SpanFilter::Not(other) => all - u64::from((self.start..self.end).contains(&other)),
            SpanFilter::WithBit(bit) => {
                // Of every 2^(bit + 1) numbers the upper half has the bit.
                let (turn, half) = (1u64 << (bit + 1), 1u64 << bit);
                all / turn * half + (all % turn).saturating_sub(half)
            }
            SpanFilter::BitOf { value, top } => {
                // Bits top − t for t below the end: those from top − end + 1 to top.
                let from = u64::from(top) + 1 - u64::from(self.end.min(top + 1));
                let kept = if from < 32 { value >> from } else { 0 };
                let width = u64::from(top) + 1 - from;
                u64::from(
                    if width < 32 {
                        kept & ((1 << width) - 1)
                    } else {
                        kept
                    }
                    .count_ones(),
                )
            }
        }
    }
}

/// The target voxels of one source neuron, without duplicates.
#[derive(Default)]
pub(super) struct Targets {
    products: Vec<[Span; 3]>,
    single: Vec<[u32; 3]>,
}

impl Targets {
    /// Finds the targets of a source voxel of box `n` in box `m`; random relations use `draw`.
    pub fn find(
        &mut self,
        relations: &[Relation],
        s: [u32; 3],
        n: [u32; 3],
        m: [u32; 3],
        draw: u64,
    ) {
        self.products.clear();
        self.single.clear();
        for relation in relations {
            match relation {
                Relation::Axes(axes) => self.products.extend(product(axes, s, n, m)),
                Relation::Tile => self.products.extend(product(&tiles(n, m), s, n, m)),
                Relation::Sweep => self.single.extend(swept(s, m)),
                Relation::RotateZ => rotated(s, n, m, &mut self.single),
                Relation::Random => self.single.push(draw::voxel(draw, m)),
            }
        }
    }

    /// Visits each target voxel once.
    pub fn each(&self, mut visit: impl FnMut([u32; 3])) {
        for (index, [xs, ys, zs]) in self.products.iter().enumerate() {
            let earlier = &self.products[..index];
            for x in xs.iter() {
                for y in ys.iter() {
                    for z in zs.iter().filter(|z| !is_within(earlier, [x, y, *z])) {
                        visit([x, y, z]);
                    }
                }
            }
        }
        self.single
            .iter()
            .filter(|voxel| !is_within(&self.products, **voxel))
            .for_each(|voxel| visit(*voxel));
    }
}

fn product(axes: &[Axis; 3], s: [u32; 3], n: [u32; 3], m: [u32; 3]) -> Option<[Span; 3]> {
    let span = |axis: usize| {
        let from = axes[axis].from;
        axes[axis].span(s[from], n[from], m[axis])
    };
    Some([span(0)?, span(1)?, span(2)?])
}

fn is_within(products: &[[Span; 3]], voxel: [u32; 3]) -> bool {
    products
        .iter()
        .any(|spans| spans.iter().zip(voxel).all(|(span, t)| span.contains(t)))
}

fn swept(s: [u32; 3], m: [u32; 3]) -> Option<[u32; 3]> {
    let [x, y, z] = [s[0].min(m[0] - 1), s[1].min(m[1] - 1), s[2].min(m[2] - 1)];
    match () {
        () if x + 1 < m[0] => Some([x + 1, y, z]),
        () if y + 1 < m[1] => Some([0, y + 1, z]),
        () if z + 1 < m[2] => Some([0, 0, z + 1]),
        () => None,
    }
}

/// `x' = cx + cos·dx + sin·dy`, `y' = cy − sin·dx + cos·dy`, rounded half away from zero, after x
/// and y are stretched to the target box.
fn rotated(s: [u32; 3], n: [u32; 3], m: [u32; 3], targets: &mut Vec<[u32; 3]>) {
    let extent = |len: u32| f64::from((len - 1).max(1));
    let centre = [extent(m[0]) / 2.0, extent(m[1]) / 2.0];
    let offset =
        |axis: usize| f64::from(s[axis]) / extent(n[axis]) * extent(m[axis]) - centre[axis];
    let [dx, dy] = [offset(0), offset(1)];
    for z in 0..m[2] {
        let angle_deg = if m[2] == 1 {
            0.0
        } else {
            -90.0 + 180.0 * (f64::from(z) / f64::from(m[2] - 1))
        };
        let (sin, cos) = sin_cos(angle_deg);
        let x = (centre[0] + cos * dx + sin * dy).round();
        let y = (centre[1] - sin * dx + cos * dy).round();
        if (0.0..f64::from(m[0])).contains(&x) && (0.0..f64::from(m[1])).contains(&y) {
            targets.push([x as u32, y as u32, z]);
        }
    }
}

/// Sine and cosine by their series, so that every system has the same bits. The angle is from −90°
/// to 90°; multiples of 90° are exact; the error elsewhere is below 1e-15.
fn sin_cos(angle_deg: f64) -> (f64, f64) {
    if angle_deg.abs() == 90.0 {
        return (angle_deg.signum(), 0.0);
    }
    let angle = angle_deg * (std::f64::consts::PI / 180.0);
    // Terms of odd and even powers alternate; 24 suffice at 90°.
    let mut sums = [0.0, 0.0];
    let mut term = 1.0;
    for power in 0..24u32 {
        let sign = if power % 4 < 2 { 1.0 } else { -1.0 };
        sums[usize::from(power % 2 == 0)] += sign * term;
        term *= angle / f64::from(power + 1);
    }
    (sums[0], sums[1])
}

fn voxels(size: [u32; 3]) -> u64 {
    size.iter().map(|side| u64::from(*side)).product()
}

/// The tiling for these boxes.
fn tiles(n: [u32; 3], m: [u32; 3]) -> [Axis; 3] {
    let to = if voxels(n) > voxels(m) {
        TargetRule::Folded
    } else {
        TargetRule::Repeated
    };
    [0, 1, 2].map(|axis| Axis::own(axis, to))
}

/// The number of pairs of source and target voxels of a list of relations, without enumeration, and
/// whether none is counted twice.
pub(super) fn pairs(relations: &[Relation], n: [u32; 3], m: [u32; 3]) -> (u64, bool) {
    let product = |axes: &[Axis; 3]| {
        let by_axis = axes
            .iter()
            .enumerate()
            .map(|(axis, rule)| rule.pairs(n[rule.from], m[axis]));
        by_axis.fold(1u64, u64::saturating_mul)
    };
    let count = |relation: &Relation| match relation {
        Relation::Axes(axes) => product(axes),
        Relation::Tile => product(&tiles(n, m)),
        Relation::Sweep | Relation::Random => voxels(n),
        Relation::RotateZ => voxels(n).saturating_mul(u64::from(m[2])),
    };
    let total = relations.iter().map(count).fold(0, u64::saturating_add);
    let is_exact = match relations {
        [] | [Relation::Axes(_) | Relation::Tile | Relation::Random] => true,
        [_] => false,
        _ => relations.len() <= MAX_COMPARED && all_disjoint(relations),
    };
    (total, is_exact)
}

/// Longer lists are not searched for overlaps when pairs are counted.
const MAX_COMPARED: usize = 256;

fn all_disjoint(relations: &[Relation]) -> bool {
    relations.iter().enumerate().all(|(index, left)| {
        relations[..index]
            .iter()
            .all(|right| is_disjoint(left, right))
    })
}

/// Whether no voxel pair is in both, by a cheap conservative test.
fn is_disjoint(left: &Relation, right: &Relation) -> bool {
    let (Relation::Axes(left), Relation::Axes(right)) = (left, right) else {
        return false;
    };
    left.iter().zip(right).any(|(left, right)| {
        let sources_differ = match (left.sources, right.sources) {
            (SourceRule::Between(a, b), SourceRule::Between(c, d)) => {
                left.from == right.from && (b < c || d < a)
            }
            _ => false,
        };
        let targets_differ = match (left.to, right.to) {
            (TargetRule::Between(a, b), TargetRule::Between(c, d)) => b < c || d < a,
            (TargetRule::Near(a, b), TargetRule::Near(c, d)) => {
                left.from == right.from && (b < c || d < a)
            }
            _ => false,
        };
        sources_differ || targets_differ
    })
}
