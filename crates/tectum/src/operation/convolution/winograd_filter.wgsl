// A weight of a filter of 3 × 3 from its transform G g Gᵀ in panels: along each axis an element, and for the middle weight the difference to a second one.
fn filter_element(row: u32, column: u32, c: u32, channel: u32) -> f32 {
    let panels = (params.channels_out + 15u) / 16u;
    return w[(((row * EDGE + column) * panels + channel / 16u) * params.channels_in + c) * 16u + channel % 16u];
}

fn filter_value(c: u32, row: u32, column: u32, channel: u32) -> f32 {
    let places = PLACES;
    let factors = FACTORS;
    let first = factors[row] * factors[column] * filter_element(places[row], places[column], c, channel);
    let by_row = select(0.0, factors[1] * factors[column] * filter_element(SECOND, places[column], c, channel), row == 1u);
    let by_column = select(0.0, factors[row] * factors[1] * filter_element(places[row], SECOND, c, channel), column == 1u);
    let both = select(0.0, factors[1] * factors[1] * filter_element(SECOND, SECOND, c, channel), row == 1u && column == 1u);
    return first - by_row - by_column + both;
}
