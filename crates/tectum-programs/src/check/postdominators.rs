//! Nearest postdominators (Cooper, Harvey and Kennedy, *A Simple, Fast Dominance Algorithm*, 2001,
//! on the reversed graph).

use crate::check::flow::Function;

/// For each block, the nearest one that every path from it to the end passes.
pub struct Postdominators {
    /// One more node than blocks: the end, which is its own postdominator.
    nearest: Vec<Option<usize>>,
}

impl Postdominators {
    pub fn of(function: &Function) -> Self {
        let end = function.blocks.len();
        let mut next: Vec<Vec<usize>> = function
            .blocks
            .iter()
            .map(|block| block.next.clone())
            .collect();
        // Every block gets a path to the end: blocks that end have one, and one block of every
        // cycle without an exit is given one.
        next.iter_mut()
            .filter(|next| next.is_empty())
            .for_each(|next| next.push(end));
        let mut order = from_end(&next, end);
        for block in 0..end {
            if !order.contains_block(block) {
                next[block].push(end);
                order = from_end(&next, end);
            }
        }
        Self {
            nearest: solve(&next, &order, end),
        }
    }

    /// The nearest postdominator of a block, unless only the end is.
    pub fn nearest(&self, block: usize) -> Option<usize> {
        self.nearest[block].filter(|nearest| *nearest + 1 < self.nearest.len())
    }
}

/// Blocks in postorder of a walk from the end against the edges.
struct Order {
    blocks: Vec<usize>,
    /// The index of each in `blocks`.
    place: Vec<Option<usize>>,
}

impl Order {
    fn contains_block(&self, block: usize) -> bool {
        self.place[block].is_some()
    }
}

fn from_end(next: &[Vec<usize>], end: usize) -> Order {
    let mut previous = vec![Vec::new(); end + 1];
    for (block, next) in next.iter().enumerate() {
        next.iter().for_each(|next| previous[*next].push(block));
    }
    let (mut blocks, mut seen) = (Vec::new(), vec![false; end + 1]);
    seen[end] = true;
    let mut open = vec![(end, 0)];
    while let Some((block, tried)) = open.last_mut() {
        let block = *block;
        match previous[block].get(*tried) {
            Some(&other) => {
                *tried += 1;
                if !std::mem::replace(&mut seen[other], true) {
                    open.push((other, 0));
                }
            }
            None => {
                blocks.push(block);
                open.pop();
            }
        }
    }
    let mut place = vec![None; end + 1];
    blocks
        .iter()
        .enumerate()
        .for_each(|(index, block)| place[*block] = Some(index));
    Order { blocks, place }
}

fn solve(next: &[Vec<usize>], order: &Order, end: usize) -> Vec<Option<usize>> {
    let mut nearest = vec![None; end + 1];
    nearest[end] = Some(end);
    let mut changed = true;
    while changed {
        changed = false;
        for &block in order.blocks.iter().rev().filter(|block| **block != end) {
            let known = next[block]
                .iter()
                .copied()
                .filter(|next| nearest[*next].is_some());
            let meeting = known.reduce(|a, b| intersect(&nearest, order, a, b));
            changed |= nearest[block] != meeting;
            nearest[block] = meeting;
        }
    }
    nearest
}

/// The nearest common postdominator of both.
fn intersect(nearest: &[Option<usize>], order: &Order, mut a: usize, mut b: usize) -> usize {
    while a != b {
        let lower = if order.place[a] < order.place[b] {
            &mut a
        } else {
            &mut b
        };
        *lower = nearest[*lower].expect("invariant: only blocks with a postdominator are met");
    }
    a
}
