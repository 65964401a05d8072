package opensearch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
)

// signer signs each request when it is sent, with its body. A request that is sent
// again is signed again, with the new time.
type signer struct {
	next            http.RoundTripper
	sign            *v4.Signer
	credentials     aws.CredentialsProvider
	region, service string
	now             func() time.Time
}

// newSigner uses the credentials that the AWS SDK finds.
func newSigner(ctx context.Context, next http.RoundTripper, region, service string) (*signer, error) {
	c, err := config.LoadDefaultConfig(ctx, config.WithRegion(region))
	if err != nil {
		return nil, fmt.Errorf("credentials to sign requests with: %w", err)
	}
	return &signer{next, v4.NewSigner(), c.Credentials, region, service, time.Now}, nil
}

// RoundTrip signs a request with AWS Signature Version 4, of its whole body, and sends it. A body is
// read into memory first. Each request asks for the credentials, so those that expire are renewed.
func (s *signer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	signed := withBody(r, body)
	keys, err := s.credentials.Retrieve(r.Context())
	if err != nil {
		return nil, fmt.Errorf("credentials to sign requests with: %w", err)
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	signed.Header.Set("X-Amz-Content-Sha256", hash)
	if err := s.sign.SignHTTP(r.Context(), keys, signed, hash, s.service, s.region, s.now()); err != nil {
		return nil, err
	}
	return s.next.RoundTrip(signed)
}

// readBody reads the body of a request, nil if it has none, and closes it.
func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

// withBody is a copy of a request that carries a body.
func withBody(r *http.Request, body []byte) *http.Request {
	out := r.Clone(r.Context())
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	if len(body) == 0 {
		out.Body = http.NoBody
	}
	return out
}
