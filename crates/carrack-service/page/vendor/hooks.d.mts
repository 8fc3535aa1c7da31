// What tsc takes the vendored file for; the page gives types where it imports it.
export const useEffect: any, useLayoutEffect: any, useMemo: any, useRef: any, useState: any, useErrorBoundary: any;
