//! The memory planner: a pure function from sizes and lifetimes to shared buffers.

use crate::launch::align;

/// When a temporary is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lifetime {
    /// The slot it represents.
    pub slot: usize,
    /// Its size.
    pub bytes: usize,
    /// The first launch that accesses it.
    pub first: usize,
    /// The last launch that accesses it.
    pub last: usize,
}

/// Which buffer each temporary lives in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MemoryPlan {
    /// Bytes of each buffer.
    pub buffers: Vec<usize>,
    /// Slot and buffer, one pair for each temporary.
    pub homes: Vec<(usize, usize)>,
    /// Bytes that separate buffers would take.
    pub unshared_bytes: usize,
}

/// Assigns each temporary a buffer that no other live one uses, the best-fitting free one first;
/// largest first, so that a buffer never has to grow.
pub(crate) fn plan_memory(lifetimes: &[Lifetime]) -> MemoryPlan {
    let mut order: Vec<&Lifetime> = lifetimes.iter().collect();
    order.sort_by_key(|lifetime| {
        (
            std::cmp::Reverse(lifetime.bytes),
            lifetime.first,
            lifetime.slot,
        )
    });
    let mut plan = MemoryPlan::default();
    let mut tenants: Vec<Vec<&Lifetime>> = Vec::new();
    for lifetime in order {
        let free = |buffer: &usize| {
            tenants[*buffer]
                .iter()
                .all(|other| other.last < lifetime.first || lifetime.last < other.first)
        };
        let home = (0..tenants.len())
            .filter(free)
            .min_by_key(|&buffer| plan.buffers[buffer])
            .unwrap_or_else(|| {
                tenants.push(Vec::new());
                plan.buffers.push(align(lifetime.bytes));
                tenants.len() - 1
            });
        tenants[home].push(lifetime);
        plan.homes.push((lifetime.slot, home));
        plan.unshared_bytes += align(lifetime.bytes);
    }
    plan
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_two_live_temporaries_share_a_buffer(spec in prop::collection::vec((1usize..100_000, 0usize..40, 0usize..10), 0..60)) {
            let lifetimes: Vec<Lifetime> = spec
                .iter()
                .enumerate()
                .map(|(slot, &(bytes, first, length))| Lifetime { slot, bytes, first, last: first + length })
                .collect();
            let plan = plan_memory(&lifetimes);
            prop_assert_eq!(plan.homes.len(), lifetimes.len());
            prop_assert!(plan.buffers.iter().sum::<usize>() <= plan.unshared_bytes);
            for (i, &(a, home_a)) in plan.homes.iter().enumerate() {
                prop_assert!(plan.buffers[home_a] >= lifetimes[a].bytes);
                for &(b, home_b) in &plan.homes[i + 1..] {
                    let apart = lifetimes[a].last < lifetimes[b].first || lifetimes[b].last < lifetimes[a].first;
                    prop_assert!(home_a != home_b || apart);
                }
            }
        }
    }

    #[test]
    fn a_chain_of_equal_temporaries_needs_two_buffers() {
        let chain: Vec<Lifetime> = (0..10)
            .map(|i| Lifetime {
                slot: i,
                bytes: 1000,
                first: i,
                last: i + 1,
            })
            .collect();
        assert_eq!(plan_memory(&chain).buffers, [1024, 1024]);
    }
}
