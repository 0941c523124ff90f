//! Tests of the graph: refusals, passes as text in → text out, derivatives, and equivalence on
//! every device.

mod cached_networks;
mod caches;
mod chains;
mod custom;
mod defects;
mod derivatives;
mod equivalence;
mod error_bound;
mod lowering;
mod networks;
mod passes;
mod random_graph;
mod refusals;
mod selection;
mod training;
mod windows;
