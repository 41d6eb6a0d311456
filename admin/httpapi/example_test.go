package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/admintest"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
)

// A program has the operator API on a listener of its own, with a route beside it.
func ExampleServer() {
	store := &admintest.Memory{} // a program has the store of package sqlite or postgres
	server := httpapi.Server{
		Service: &admin.Service{
			Outbox: store, Enqueuer: store, Inbox: store, Tokens: store, Name: "plant-7",
			Destinations: func() []admin.Destination { return []admin.Destination{{Name: "inventory"}} },
		},
		AuthRequired: true, // else whoever can connect may do everything
		Mounts: []httpapi.Mount{{
			Pattern: "GET /alive", Open: true,
			Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		}},
	}
	handler, err := server.Handler()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"/alive", "/v1/messages"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Println(path, w.Code)
	}
	// Output:
	// /alive 200
	// /v1/messages 401
}
