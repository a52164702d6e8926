//! The archive that `log.collect_system_logs` returns: a gzipped tar file with one text in it, as base64.

use std::io::Write as _;

use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Packs one file.
///
/// `name` is shorter than 100 bytes; `text` is shorter than 8 MiB.
pub(crate) fn archive(name: &str, text: &str) -> String {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    let packed = packer
        .write_all(&tar(name, text.as_bytes()))
        .and_then(|()| packer.finish());
    base64::engine::general_purpose::STANDARD
        .encode(packed.expect("memory takes whatever is written to it"))
}

fn tar(name: &str, content: &[u8]) -> Vec<u8> {
    let mut header = [0u8; 512];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", content.len()).as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());

    let mut file = header.to_vec();
    file.extend(content);
    file.resize(file.len().next_multiple_of(512) + 1024, 0);
    file
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn the_archive_is_whole_blocks_and_names_the_file() {
        let file = tar("journal", b"hello");
        assert_eq!(file.len() % 512, 0);
        assert!(file.starts_with(b"journal\0"));
        assert_eq!(&file[512..517], b"hello");
        let packed = base64::engine::general_purpose::STANDARD
            .decode(archive("journal", "hello"))
            .unwrap();
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&packed[..])
            .read_to_end(&mut unpacked)
            .unwrap();
        assert_eq!(unpacked, file);
    }
}
