use super::*;
use crate::readings::RasBlock;

#[test]
fn the_sum_of_uncorrectable_errors_is_absent_while_one_block_cannot_be_read() {
    let block = |uncorrectable| RasBlock {
        block: "umc".to_owned(),
        correctable: Some(1),
        deferred: None,
        uncorrectable,
    };
    let sum = |blocks: &[RasBlock]| {
        let card = CardReadings { ras: blocks.to_vec(), ..CardReadings::default() };
        (ECC_UNCORRECTABLE.values)(&card).first().map(|it| it.value)
    };
    assert_eq!(sum(&[block(Some(5)), block(Some(2))]), Some(7.0));
    assert_eq!(sum(&[block(Some(5)), block(None)]), None);
    assert_eq!(sum(&[block(None), block(Some(2))]), None);
    assert_eq!(sum(&[]), None);
}
