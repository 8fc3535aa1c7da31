//! A page in a headless Chromium: what it asks for, what its console says, and what it looks like.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use super::Sandbox;
use super::running::InTime;

/// How a browser is asked to show a page.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The reader's system asks for dark pages.
    pub dark: bool,
    /// Of the window, in pixels.
    pub width: u32,
}

/// A browser has opened a page.
pub struct Opened {
    /// What it asked for, from whichever host: the first lines.
    pub requests: Vec<String>,
    /// What it had to say.
    pub console: Vec<String>,
    /// What it looks like.
    pub picture: Picture,
}

/// Serves a page, and shows it in a headless Chromium that believes every host to be this server.
pub fn open(sandbox: &Sandbox, page: Vec<u8>, look: Look) -> Opened {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (told, page) = (Arc::clone(&told), page.clone());
            std::thread::spawn(move || serve(stream, &told, &page));
        }
    });
    let (profile, shot) = (sandbox.path("profile"), sandbox.path(format!("{look:?}.png")));
    let scheme = if look.dark { 0 } else { 1 };
    let mut browser = Command::new("chromium");
    browser
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-default-apps", "--disable-extensions", "--disable-dev-shm-usage"])
        .args(["--enable-logging=stderr", "--proxy-server=direct://", "--force-device-scale-factor=1"])
        // What the browser itself asks its maker for.
        .arg("--disable-features=NetworkTimeServiceQuerying,OptimizationHints,MediaRouter")
        .arg(format!(
            "--host-resolver-rules=MAP *.google.com ~NOTFOUND, MAP *.googleapis.com ~NOTFOUND, MAP *.gstatic.com \
             ~NOTFOUND, MAP * 127.0.0.1:{port}"
        ))
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--window-size={},1400", look.width))
        .arg(format!("--screenshot={}", shot.display()))
        .arg("http://page.invalid/")
        .env("HOME", sandbox.path("home"))
        .stdin(Stdio::null());
    let ran = browser.output_in_time().expect("chromium: bash tests/install-needs.sh installs it");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    let console = said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    let shown = std::fs::read(&shot).unwrap_or_else(|error| panic!("no picture: {error}\n{said}"));
    let requests = requests.lock().unwrap().clone();
    Opened { requests, console, picture: Picture::of(&shown) }
}

fn serve(mut stream: std::net::TcpStream, told: &Mutex<Vec<String>>, page: &[u8]) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => request.extend_from_slice(&buffer[..count]),
        }
    }
    // A connection may be made for nothing, in advance.
    if request.is_empty() {
        return;
    }
    let text = String::from_utf8_lossy(&request);
    let host = text.lines().find(|line| line.to_ascii_lowercase().starts_with("host:")).unwrap_or_default();
    told.lock().unwrap().push(format!("{} {host}", text.lines().next().unwrap_or_default()));
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        page.len()
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(page));
}

/// The pixels of a PNG of 8 bits for each of red, green and blue, with or without opacity.
pub struct Picture {
    /// In pixels.
    pub width: usize,
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    fn of(png: &[u8]) -> Self {
        assert_eq!(&png[1..4], b"PNG");
        let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()) as usize;
        let (width, depth, kind) = (number(16), png[24], png[25]);
        assert!(depth == 8 && matches!(kind, 2 | 6), "depth {depth}, kind {kind}");
        let bytes = if kind == 6 { 4 } else { 3 };
        let (mut at, mut packed) = (8, Vec::new());
        while at + 12 <= png.len() {
            let length = number(at);
            if &png[at + 4..at + 8] == b"IDAT" {
                packed.extend_from_slice(&png[at + 8..at + 8 + length]);
            }
            at += 12 + length;
        }
        let mut raw = Vec::new();
        flate2::read::ZlibDecoder::new(&packed[..]).read_to_end(&mut raw).unwrap();
        let mut above = vec![0; width * bytes];
        let mut pixels = Vec::new();
        for line in raw.chunks_exact(width * bytes + 1) {
            let mut row = line[1..].to_vec();
            for at in 0..row.len() {
                let before = |row: &[u8]| if at >= bytes { row[at - bytes] } else { 0 };
                let (left, up, corner) = (before(&row), above[at], before(&above));
                row[at] = row[at].wrapping_add(predicted(line[0], left, up, corner));
            }
            pixels.extend(row.chunks_exact(bytes).map(|pixel| [pixel[0], pixel[1], pixel[2]]));
            above = row;
        }
        Self { width, pixels }
    }

    /// How many pixels are of about this colour.
    pub fn count(&self, colour: [u8; 3]) -> usize {
        let near = |pixel: &&[u8; 3]| pixel.iter().zip(colour).all(|(one, other)| one.abs_diff(other) < 12);
        self.pixels.iter().filter(near).count()
    }

    /// 0 is black, 255 white.
    pub fn brightness(&self) -> f64 {
        let sum: f64 = self.pixels.iter().flatten().map(|&part| f64::from(part)).sum();
        sum / (self.pixels.len() * 3) as f64
    }
}

/// What a filter of PNG adds.
fn predicted(filter: u8, left: u8, up: u8, corner: u8) -> u8 {
    let [a, b, c] = [left, up, corner].map(i16::from);
    match filter {
        1 => left,
        2 => up,
        3 => u8::try_from((a + b) / 2).unwrap(),
        4 => {
            let guess = a + b - c;
            let far = |from: i16| (guess - from).abs();
            if far(a) <= far(b) && far(a) <= far(c) {
                left
            } else if far(b) <= far(c) {
                up
            } else {
                corner
            }
        }
        _ => 0,
    }
}
