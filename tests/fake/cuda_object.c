/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an object, whatever it is. */
#include "cuda_driver.h"

void fake_object_destroy(struct fake_object *object)
{
	switch (object->kind) {
	case FAKE_EVENT:
		fake_event_release((struct CUevent_st *)object);
		break;
	case FAKE_MODULE:
		fake_module_release((struct CUmod_st *)object);
		break;
	case FAKE_LIBRARY:
		fake_library_release((struct CUlib_st *)object);
		break;
	case FAKE_LINK:
		fake_link_release((struct CUlinkState_st *)object);
		break;
	case FAKE_FUNCTION:
		fake_function_release((struct CUfunc_st *)object);
		break;
	case FAKE_ARRAY:
		fake_array_release((struct CUarray_st *)object);
		break;
	case FAKE_MIPMAP:
		fake_mipmap_release((struct CUmipmappedArray_st *)object);
		break;
	default:
		break;
	}
	fake_object_free(object);
}
