// Observed polls feeds, and prints what an operator sees of it: a span of OpenTelemetry for
// each request, by Client.Wrap; Prometheus' metrics, by Poller.Polled; and the events of the
// Client, by slog. docs/OPERATIONS.md lists these.
//
//	cd examples/observed && go run . [URL…]
//
// Without a URL it serves and reads three feeds. A service exports its spans by OTLP, and
// serves the metrics with promhttp.
package main

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/examples/site"
	"github.com/feedhistory/feedhistory/mirror"
)

func main() {
	client, urls, stop := site.Feeds(site.Archived, site.Plain, site.Broken)
	defer stop()
	if err := run(context.Background(), os.Stdout, client, urls); err != nil {
		log.Fatal(err)
	}
}

// run polls each feed once, and writes the spans, the metrics and the events.
func run(ctx context.Context, out io.Writer, client *feedhistory.Client, urls []string) error {
	exporter, err := stdouttrace.New(stdouttrace.WithWriter(out))
	if err != nil {
		return err
	}
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	client.Wrap = traced(provider.Tracer("feedhistory"))
	client.Logger = slog.New(slog.NewJSONHandler(out, nil))

	registry := prometheus.NewRegistry()
	counts := newMetrics(registry)
	poller := &mirror.Poller{
		Mirror: &mirror.Mirror{Store: mirror.NewMemory(), Client: client},
		Polled: counts.polled,
	}
	for _, url := range urls {
		feed := mirror.NewFeed(url)
		if _, err := mirror.Subscribe(ctx, poller.Mirror.Store, feed); err != nil {
			return err
		}
		poller.Add(feed)
	}
	if err := poller.Drain(ctx); err != nil {
		return err
	}
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(out, family); err != nil {
			return err
		}
	}
	return provider.Shutdown(ctx)
}

// traced makes a span of each request, which ends with the headers. It leaves out the query,
// because that may have a secret; otelhttp's spans have the whole URL.
func traced(tracer trace.Tracer) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			ctx, span := tracer.Start(r.Context(), r.Method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
				attribute.String("http.request.method", r.Method),
				attribute.String("server.address", r.URL.Host), attribute.String("url.path", r.URL.Path),
			))
			defer span.End()
			resp, err := next.RoundTrip(r.WithContext(ctx))
			if err != nil {
				span.SetStatus(codes.Error, feedhistory.Describe(err))
				return resp, err
			}
			span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
			return resp, nil
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// metrics counts polls and what they bring. None has a feed's URL as a label, because a
// server with many feeds would have as many series.
type metrics struct {
	polls    *prometheus.CounterVec // by outcome
	entries  *prometheus.CounterVec // by change
	verdicts *prometheus.GaugeVec   // feeds by verdict
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		polls:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "feeds_polls_total", Help: "Polls, by outcome."}, []string{"outcome"}),
		entries:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "feeds_entries_total", Help: "Entries, by change."}, []string{"change"}),
		verdicts: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "feeds_verdicts", Help: "Feeds polled, by verdict."}, []string{"verdict"}),
	}
	r.MustRegister(m.polls, m.entries, m.verdicts)
	return m
}

// polled is a Poller's Polled.
func (m *metrics) polled(before *mirror.Feed, r *mirror.Report, err error) {
	switch {
	case err != nil:
		m.polls.WithLabelValues("store").Inc() // or the program is ending
		return
	case r.Failure != nil:
		m.polls.WithLabelValues("failure").Inc()
	default:
		m.polls.WithLabelValues("ok").Inc()
	}
	m.entries.WithLabelValues("added").Add(float64(r.Added))
	m.entries.WithLabelValues("changed").Add(float64(r.Changed))
	m.entries.WithLabelValues("deleted").Add(float64(r.Deleted))
	if before.Polls > 0 {
		m.verdicts.WithLabelValues(before.Verdict.String()).Dec()
	}
	m.verdicts.WithLabelValues(r.Feed.Verdict.String()).Inc()
}
