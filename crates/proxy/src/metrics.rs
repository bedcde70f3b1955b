//! HTTP server for monitoring, listening on `metrics_listen`: `/metrics` in Prometheus' text
//! format, and `/healthz`, which returns 200 while the PostgreSQL server accepts connections and
//! otherwise 503.
//!
//! Invariant: it shows only counters, and no value or name of a user, database or object.
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::shared::Shared;
use crate::startup;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
/// Maximum number of concurrent connections; others wait.
const CONNECTIONS: usize = 16;
/// Maximum time to wait for a silent monitoring client.
const HEAD_SECONDS: u64 = 10;

/// Serves until the process ends.
pub async fn serve(shared: Arc<Shared>, listener: TcpListener) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(slot) = slots.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors: avoid a busy loop.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(shared.clone(), request));
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(HEAD_SECONDS))
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer)
                .await;
            drop(slot);
        });
    }
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let get = [Method::GET, Method::HEAD].contains(request.method());
    let (status, text) = match (get, request.uri().path()) {
        (true, "/metrics") => (StatusCode::OK, metrics(&shared)),
        (true, "/healthz") => match startup::reachable(&shared).await {
            true => (StatusCode::OK, "ok\n".into()),
            false => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the PostgreSQL server cannot be reached\n".into(),
            ),
        },
        (true, _) => (StatusCode::NOT_FOUND, "try /metrics or /healthz\n".into()),
        (false, _) => (StatusCode::METHOD_NOT_ALLOWED, "only GET\n".into()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    Ok(response)
}

fn metrics(shared: &Shared) -> String {
    let mut text = String::new();
    for metric in shared.metrics() {
        let kind = match metric.name.ends_with("_total") {
            true => "counter",
            false => "gauge",
        };
        let name = metric.name;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {name} {}", metric.help);
        let _ = writeln!(text, "# TYPE {name} {kind}\n{name} {}", metric.value);
    }
    text
}
