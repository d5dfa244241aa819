// The registry of go-containerregistry with its referrers API switched on: no program of Debian's
// does so. It listens on a free port of loopback.
package main

import (
	"net"
	"net/http"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	panic(http.Serve(listener, registry.New(registry.WithReferrersSupport(true))))
}
