//! Disk images made for a test, and the HTTP server the agent gets them from.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use actix_web::body::SizedStream;
use actix_web::web::Bytes;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

const MIB: usize = 1 << 20;
const SECTOR: usize = 512;
const MBR_TABLE: usize = 446;

/// An image as it is offered, and the bytes a disk must hold afterwards.
pub struct Image {
    /// The file name in its address; failures have to mention it.
    pub name: String,
    pub disk_format: &'static str,
    /// What is downloaded.
    pub file: Bytes,
    /// What has to arrive on the disk, from its first byte on.
    pub content: Bytes,
}

impl Image {
    /// A whole-disk image: an MBR with one partition from 1 MiB to the end, and
    /// bytes without a pattern (the same for the same name and size) in the
    /// boot code and everywhere behind the MBR.
    pub fn raw(name: &str, size_mib: usize) -> Image {
        let mut content = noise(name, size_mib * MIB);
        let first_sector = MIB / SECTOR;
        let sectors = size_mib * MIB / SECTOR - first_sector;
        let entry = &mut content[MBR_TABLE..SECTOR];
        entry.fill(0);
        entry[0] = 0x80; // bootable
        entry[4] = 0x83; // Linux
        entry[8..12].copy_from_slice(&(first_sector as u32).to_le_bytes());
        entry[12..16].copy_from_slice(&(sectors as u32).to_le_bytes());
        entry[64..].copy_from_slice(&[0x55, 0xaa]);
        let content = Bytes::from(content);
        Image {
            name: name.into(),
            disk_format: "raw",
            file: content.clone(),
            content,
        }
    }

    /// The same, packed by qemu-img.
    pub fn qcow2(name: &str, size_mib: usize) -> Image {
        let raw = Image::raw(name, size_mib);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (from, to) = (folder.path().join("raw"), folder.path().join("qcow2"));
        std::fs::write(&from, &raw.content).expect("the raw image is written");
        let done = Command::new("qemu-img")
            .args(["convert", "-f", "raw", "-O", "qcow2"])
            .args([&from, &to])
            .status();
        assert!(done.expect("qemu-img runs").success());
        Image {
            disk_format: "qcow2",
            file: Bytes::from(std::fs::read(to).expect("the qcow2 image is read")),
            ..raw
        }
    }

    pub fn sha256(&self) -> String {
        hex(&Sha256::digest(&self.file))
    }
}

/// Serves images at `http://127.0.0.1:port/NAME`, until dropped.
pub struct ImageServer {
    url: String,
    shelf: Arc<Shelf>,
    handle: actix_web::dev::ServerHandle,
}

struct Shelf {
    images: Mutex<HashMap<String, Bytes>>,
    /// How many downloads have got their first half.
    begun: AtomicUsize,
    /// Whether the second half is given out.
    is_open: watch::Sender<bool>,
}

impl ImageServer {
    pub fn start() -> ImageServer {
        ImageServer::start_as(true)
    }

    /// Gives out the first half of each image only, until [`ImageServer::open`]:
    /// so long the agent is in the middle of its write.
    pub fn start_closed() -> ImageServer {
        ImageServer::start_as(false)
    }

    fn start_as(is_open: bool) -> ImageServer {
        let shelf = Arc::new(Shelf {
            images: Mutex::default(),
            begun: AtomicUsize::new(0),
            is_open: watch::Sender::new(is_open),
        });
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (give, take) = std::sync::mpsc::channel();
        let served = shelf.clone();
        std::thread::spawn(move || {
            actix_rt::System::new().block_on(async move {
                let server = HttpServer::new(move || {
                    App::new()
                        .app_data(web::Data::from(served.clone()))
                        .default_service(web::to(serve))
                })
                .workers(1)
                .disable_signals()
                .listen(listener)
                .expect("the image server listens")
                .run();
                give.send(server.handle()).expect("the test waits");
                server.await
            })
        });
        ImageServer {
            url,
            shelf,
            handle: take.recv().expect("the image server runs"),
        }
    }

    /// From now on, and for the downloads that wait, images are given out whole.
    pub fn open(&self) {
        self.shelf.is_open.send_replace(true);
    }

    /// How many downloads there have been, ended or not.
    pub fn downloads(&self) -> usize {
        self.shelf.begun.load(Ordering::SeqCst)
    }

    /// Offers the image and answers the instance_info that deploys it.
    pub fn offer(&self, image: &Image) -> Value {
        let images = &self.shelf.images;
        let mut images = images.lock().expect("no test panics with the lock");
        images.insert(image.name.clone(), image.file.clone());
        self.instance_info(image)
    }

    /// The instance_info of an image, whether it is offered or not.
    pub fn instance_info(&self, image: &Image) -> Value {
        json!({
            "image_source": format!("{}/{}", self.url, image.name),
            "image_os_hash_algo": "sha256",
            "image_os_hash_value": image.sha256(),
            "image_disk_format": image.disk_format,
            "image_type": "whole-disk",
        })
    }
}

impl Drop for ImageServer {
    fn drop(&mut self) {
        drop(self.handle.stop(false)); // the request to stop is sent at once
    }
}

async fn serve(request: HttpRequest, shelf: web::Data<Shelf>) -> HttpResponse {
    let name = request.path().trim_start_matches('/');
    let images = shelf.images.lock().expect("no test panics with the lock");
    let Some(file) = images.get(name).cloned() else {
        return HttpResponse::NotFound().body("no such image");
    };
    drop(images);
    let length = file.len() as u64;
    let (first, second) = (file.slice(..file.len() / 2), file.slice(file.len() / 2..));
    let (mut opened, shelf) = (shelf.is_open.subscribe(), shelf.into_inner());
    let halves =
        stream::once(async move { Ok::<_, Infallible>(first) }).chain(stream::once(async move {
            // Whoever asks for the second half has taken the first.
            shelf.begun.fetch_add(1, Ordering::SeqCst);
            opened
                .wait_for(|is_open| *is_open)
                .await
                .expect("the shelf outlives its downloads");
            Ok(second)
        }));
    HttpResponse::Ok().body(SizedStream::new(length, Box::pin(halves)))
}

/// What `gzip` and base64 make of a config drive, as the API takes it.
pub fn packed(drive: &[u8]) -> String {
    use base64::Engine;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("drive");
    std::fs::write(&path, drive).expect("the config drive is written");
    let done = Command::new("gzip")
        .arg("-c")
        .arg(Path::new(&path))
        .output();
    base64::engine::general_purpose::STANDARD.encode(done.expect("gzip runs").stdout)
}

/// Bytes without a pattern, the same for the same seed (xorshift).
pub fn noise(seed: &str, length: usize) -> Vec<u8> {
    let digest = Sha256::digest(seed);
    let mut state = u64::from_le_bytes(digest[..8].try_into().expect("eight bytes")) | 1;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let mut bytes: Vec<u8> = words.take(length.div_ceil(8)).flatten().collect();
    bytes.truncate(length);
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
