//! Random bytes from the system.

/// Random bytes.
pub fn random<const N: usize>() -> Result<[u8; N], envelope::Error> {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| envelope::Error::Random)?;
    Ok(bytes)
}
